"""The plugin's application, and a task instance's descriptor as JSON and as plain text."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from airflow_hive_opt.documents.descriptor import to_json
from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.plugins import api, shell
from airflow_hive_opt.plugins.access import LOGIN, MAY_READ
from airflow_hive_opt.plugins.found import FoundDescriptor


def application() -> FastAPI:
    """The application for the API server."""
    # FastAPI's own route for the description needs no login, and its pages load scripts of others
    app = FastAPI(title="Hive Opt", openapi_url=None, docs_url=None, redoc_url=None)
    app.get("/openapi.json", dependencies=LOGIN, include_in_schema=False)(description)
    app.get("/dags/{dag_id}/descriptor", dependencies=MAY_READ)(descriptor)
    app.get("/dags/{dag_id}/explain", dependencies=MAY_READ)(explain)
    app.include_router(api.router)
    app.include_router(shell.router)
    app.exception_handler(HTTPException)(shell.refused)
    app.exception_handler(RequestValidationError)(shell.refused)
    app.middleware("http")(shell.with_headers)
    return app


def description(request: Request) -> Response:
    """The JSON API in OpenAPI's form, with the path below which the API server has it."""
    servers = [{"url": request.scope.get("root_path", "")}]
    return JSONResponse({**request.app.openapi(), "servers": servers})


def descriptor(found: FoundDescriptor) -> Response:
    """The stored descriptor as JSON, after its digest is checked."""
    return Response(to_json(found), media_type="application/json")


def explain(found: FoundDescriptor) -> Response:
    """The descriptor's decisions as plain text; escapes text that is not valid Unicode."""
    text = f"{descriptor_to_text(found)}\n".encode(errors="backslashreplace")
    return Response(text, media_type="text/plain; charset=utf-8")
