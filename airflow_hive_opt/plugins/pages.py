"""The plugin's application, and a task instance's descriptor as JSON and as plain text."""

from __future__ import annotations

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.xcom import XComModel
from fastapi import FastAPI, HTTPException, status
from fastapi.responses import Response
from sqlalchemy import select

from airflow_hive_opt.links.pages import DESCRIPTOR_KEY
from airflow_hive_opt.plugins import api, shell
from airflow_hive_opt.plugins.access import MAY_READ
from airflow_hive_opt.plugins.queries import loaded
from airflow_hive_opt.plugins.stored import ElsewhereError, SweptError, descriptor_at
from airflow_hive_opt.runtime.descriptor import Descriptor, to_json
from airflow_hive_opt.runtime.descriptor_text import descriptor_to_text


def application() -> FastAPI:
    """The application for the API server."""
    app = FastAPI(title="Hive Opt", docs_url=None, redoc_url=None)  # their scripts are elsewhere
    app.get("/dags/{dag_id}/descriptor", dependencies=MAY_READ)(descriptor)
    app.get("/dags/{dag_id}/explain", dependencies=MAY_READ)(explain)
    app.include_router(api.router)
    app.include_router(shell.router)
    app.middleware("http")(shell.with_headers)
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
    try:
        return descriptor_at(str(loaded(value)), dag_id, run_id)
    except (ElsewhereError, SweptError) as error:
        raise _missing(str(error)) from None


def _missing(why: str) -> HTTPException:
    return HTTPException(status.HTTP_404_NOT_FOUND, why)
