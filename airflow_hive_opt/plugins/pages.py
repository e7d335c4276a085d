"""The pages of a task instance: its partition descriptor, as JSON and as plain text.

Airflow does not protect a plugin's application. Every route therefore requires the permission to
read the DAG's XComs, because the descriptor's URI is one of them.
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
from airflow_hive_opt.provider.airflow_compat import (
    ObjectStoragePath,
    conf,
    pages_accept_browser_logins,
)
from airflow_hive_opt.provider.attempts import is_of_run
from airflow_hive_opt.runtime.descriptor import Descriptor, DescriptorError, load, to_json
from airflow_hive_opt.runtime.descriptor_text import descriptor_to_text

log = logging.getLogger(__name__)


def _login_is_known(request: Request) -> None:
    if not pages_accept_browser_logins() and "Authorization" not in request.headers:
        raise HTTPException(
            status.HTTP_401_UNAUTHORIZED,
            "in a browser these pages need Airflow 3.1; before 3.1, send a token: "
            "curl -H 'Authorization: Bearer TOKEN'",
        )


_MAY_READ = [
    Depends(_login_is_known),
    Depends(security.requires_access_dag("GET", DagAccessEntity.XCOM)),
]


def application() -> FastAPI:
    """The application for the API server."""
    app = FastAPI(title="Hive Opt", docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/dags/{dag_id}/descriptor", dependencies=_MAY_READ)(descriptor)
    app.get("/dags/{dag_id}/explain", dependencies=_MAY_READ)(explain)
    return app


def descriptor(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: int = -1
) -> Response:
    """The stored descriptor as JSON, after its digest is checked."""
    found = _descriptor_of(dag_id, run_id, task_id, map_index, session)
    return Response(to_json(found), media_type="application/json")


def explain(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: int = -1
) -> Response:
    """The descriptor's decisions as plain text; escapes text that is not valid Unicode."""
    found = _descriptor_of(dag_id, run_id, task_id, map_index, session)
    text = f"{descriptor_to_text(found)}\n".encode(errors="backslashreplace")
    return Response(text, media_type="text/plain; charset=utf-8")


def _descriptor_of(
    dag_id: str, run_id: str, task_id: str, map_index: int, session: SessionDep
) -> Descriptor:
    """The descriptor; raises 404 with the reason. Only the server's log shows storage errors."""
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
            "the partition descriptor can't be read: it was deleted or changed, or the API "
            "server can't reach or read the storage of [hive_opt] descriptor_path. See the API "
            "server's log"
        ) from None


def _is_ours(uri: str, dag_id: str, run_id: str) -> bool:
    """Whether the URI is a path of this run's tasks; whoever writes XComs could name any other.

    Users who may read one DAG then can't see another DAG's descriptors. A map join names the
    descriptor of its local task, which is another task of the same run.
    """
    root = conf.get("hive_opt", "descriptor_path", fallback="")
    return bool(root) and is_of_run(uri, root, dag_id, run_id)


def _text(value: object) -> str:
    """The text of an XCom, which is JSON, encoded once or twice."""
    try:
        return str(json.loads(str(value)))
    except (ValueError, RecursionError):
        return str(value)


def _missing(why: str) -> HTTPException:
    return HTTPException(status.HTTP_404_NOT_FOUND, why)
