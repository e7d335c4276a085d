"""The pages of a task instance: its partition descriptor, and what it says for people.

Airflow gives a plugin's application no protection of its own, so every route asks for the right
to read the XComs of the DAG: the descriptor's URI is one of them.
"""

from __future__ import annotations

import json
import logging

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api import security
from airflow.models.xcom import XComModel
from fastapi import Depends, FastAPI, HTTPException, Request, status
from fastapi.responses import Response
from sqlalchemy import select

from airflow_hive_opt.links.pages import DESCRIPTOR_KEY
from airflow_hive_opt.provider.airflow_compat import ObjectStoragePath, conf
from airflow_hive_opt.provider.attempts import is_of_run
from airflow_hive_opt.runtime.descriptor import Descriptor, DescriptorError, load, to_json
from airflow_hive_opt.runtime.descriptor_text import descriptor_to_text

log = logging.getLogger(__name__)
_BROWSERS_LOG_IN = hasattr(security, "COOKIE_NAME_JWT_TOKEN")  # since Airflow 3.1


def _login_is_known(request: Request) -> None:
    if not _BROWSERS_LOG_IN and "Authorization" not in request.headers:
        raise HTTPException(
            status.HTTP_401_UNAUTHORIZED,
            "in a browser these pages need Airflow 3.1; before it, ask with a token: "
            "curl -H 'Authorization: Bearer TOKEN'",
        )


_MAY_READ = [
    Depends(_login_is_known),
    Depends(security.requires_access_dag("GET", DagAccessEntity.XCOM)),
]


def application() -> FastAPI:
    """The application that the API server mounts."""
    app = FastAPI(title="Hive Opt", docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/dags/{dag_id}/descriptor", dependencies=_MAY_READ)(descriptor)
    app.get("/dags/{dag_id}/explain", dependencies=_MAY_READ)(explain)
    return app


def descriptor(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: int = -1
) -> Response:
    """The descriptor as it lies in storage, its seal checked."""
    found = _descriptor_of(dag_id, run_id, task_id, map_index, session)
    return Response(to_json(found), media_type="application/json")


def explain(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: int = -1
) -> Response:
    """What the descriptor decides, for people; text that is no Unicode is escaped."""
    found = _descriptor_of(dag_id, run_id, task_id, map_index, session)
    text = f"{descriptor_to_text(found)}\n".encode(errors="backslashreplace")
    return Response(text, media_type="text/plain; charset=utf-8")


def _descriptor_of(
    dag_id: str, run_id: str, task_id: str, map_index: int, session: SessionDep
) -> Descriptor:
    """Raises 404 with the reason; storage's own words go to the server's log alone."""
    value = session.scalar(
        select(XComModel.value).where(
            XComModel.dag_id == dag_id,
            XComModel.run_id == run_id,
            XComModel.task_id == task_id,
            XComModel.map_index == map_index,
            XComModel.key == DESCRIPTOR_KEY,
        )
    )
    if value is None:
        raise _missing("this task instance has written no partition descriptor")
    uri = _text(value)
    try:
        if not _is_ours(uri, dag_id, run_id):
            raise _missing(
                "only descriptors below [hive_opt] descriptor_path of the API server's "
                f"configuration that a task of this run wrote are shown, not {uri[:300]!a}"
            )
        return load(ObjectStoragePath(uri))
    except (DescriptorError, ValueError, ImportError):
        log.warning("the descriptor of %s.%s can't be shown", dag_id, task_id, exc_info=True)
        raise _missing(
            "the partition descriptor can't be read: it was swept or altered, or this server does "
            "not reach the storage of [hive_opt] descriptor_path, or may not read it. The API "
            "server's log says more"
        ) from None


def _is_ours(uri: str, dag_id: str, run_id: str) -> bool:
    """Whether the URI lies where this run's tasks write: whoever writes XComs may name any.

    A DAG's readers see no other DAG's descriptors. A map join names its local task's, which is
    another task of the same run.
    """
    root = conf.get("hive_opt", "descriptor_path", fallback="")
    return bool(root) and is_of_run(uri, root, dag_id, run_id)


def _text(value: object) -> str:
    """XComs are stored as JSON, once or twice encoded."""
    try:
        return str(json.loads(str(value)))
    except (ValueError, RecursionError):
        return str(value)


def _missing(why: str) -> HTTPException:
    return HTTPException(status.HTTP_404_NOT_FOUND, why)
