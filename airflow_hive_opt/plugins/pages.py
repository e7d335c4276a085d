"""The pages of a task instance: its partition descriptor, and what it says for people.

Airflow gives a plugin's application no protection of its own, so every route asks for the right
to read the XComs of the DAG: the descriptor's URI is one of them.
"""

from __future__ import annotations

import dataclasses
import json
import logging

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.models.xcom import XComModel
from airflow.sdk import ObjectStoragePath
from airflow.sdk.configuration import conf
from fastapi import Depends, FastAPI, HTTPException, status
from fastapi.responses import JSONResponse, PlainTextResponse

from airflow_hive_opt.links.pages import DESCRIPTOR_KEY
from airflow_hive_opt.runtime.descriptor import Descriptor, DescriptorError, decode
from airflow_hive_opt.runtime.descriptor_text import descriptor_to_text

log = logging.getLogger(__name__)
_MAY_READ = [Depends(requires_access_dag("GET", DagAccessEntity.XCOM))]


def application() -> FastAPI:
    """The application that the API server mounts."""
    app = FastAPI(title="Hive Opt", docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/dags/{dag_id}/descriptor", dependencies=_MAY_READ)(descriptor)
    app.get("/dags/{dag_id}/explain", dependencies=_MAY_READ)(explain)
    return app


def descriptor(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: int = -1
) -> JSONResponse:
    """The descriptor as it lies in storage, its seal checked."""
    found = _descriptor_of(dag_id, run_id, task_id, map_index, session)
    return JSONResponse({**dataclasses.asdict(found), "sha256": found.digest})


def explain(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: int = -1
) -> PlainTextResponse:
    """What the descriptor decides, for people."""
    found = _descriptor_of(dag_id, run_id, task_id, map_index, session)
    return PlainTextResponse(descriptor_to_text(found) + "\n")


def _descriptor_of(
    dag_id: str, run_id: str, task_id: str, map_index: int, session: SessionDep
) -> Descriptor:
    """Raises 404 with the reason; storage's own words go to the server's log alone."""
    value = session.scalar(
        XComModel.get_many(
            key=DESCRIPTOR_KEY,
            run_id=run_id,
            dag_ids=dag_id,
            task_ids=task_id,
            map_indexes=map_index,
            limit=1,
        ).with_only_columns(XComModel.value)
    )
    if value is None:
        raise _missing("this task instance has written no partition descriptor")
    uri = _text(value)
    if not _is_ours(uri):
        raise _missing(
            "only descriptors below [hive_opt] descriptor_path of the API server's configuration "
            f"are shown, not {uri}"
        )
    try:
        return decode(ObjectStoragePath(uri).read_bytes())
    except (DescriptorError, OSError, ValueError, ImportError):
        log.warning("the descriptor of %s.%s can't be shown", dag_id, task_id, exc_info=True)
        raise _missing(
            "the partition descriptor can't be read: it was swept, or this server does not reach "
            "the storage of [hive_opt] descriptor_path. The API server's log says more"
        ) from None


def _is_ours(uri: str) -> bool:
    """Whether the URI lies where descriptors are written: whoever writes XComs may name any."""
    root = conf.get("hive_opt", "descriptor_path", fallback="")
    if not root:
        return False
    below = str(ObjectStoragePath(root.rstrip("/"))).rstrip("/") + "/"
    return uri.startswith(below) and ".." not in uri.split("/")


def _text(value: object) -> str:
    """XComs are stored as JSON, once or twice encoded."""
    try:
        return str(json.loads(str(value)))
    except ValueError:
        return str(value)


def _missing(why: str) -> HTTPException:
    return HTTPException(status.HTTP_404_NOT_FOUND, why)
