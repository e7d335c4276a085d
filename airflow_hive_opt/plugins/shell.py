"""The HTML pages: a shell that loads the script, and the files of the script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape
from typing import cast

from fastapi import APIRouter, Request, status
from fastapi.exception_handlers import (
    http_exception_handler,
    request_validation_exception_handler,
)
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.exceptions import HTTPException

from airflow_hive_opt.links.pages import PREFIX, base_path
from airflow_hive_opt.pages.static_files import STATIC
from airflow_hive_opt.plugins.access import LOGIN, MAY_READ

_FILES = {"pages.js": "text/javascript", "pages.css": "text/css"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Partition pruning</title>
<link rel="stylesheet" href="{base}/static/pages.css">
<script type="module" src="{base}/static/pages.js"></script>
</head>
<body><div id="root" data-base="{base}"{message}</div></body>
</html>
"""
_NOT_LOGGED_IN = "you are not logged in: log in to Airflow, then load this page again"
_NOT_COMPLETE = "this address names no run of a task"

router = APIRouter(include_in_schema=False)


@router.get("/pages/", dependencies=LOGIN)
@router.get("/pages/reasons", dependencies=LOGIN)
def of_no_dag() -> Response:
    """The page of all tasks, and the page of the reason codes."""
    return _shell()


@router.get("/pages/dags/{dag_id}", dependencies=MAY_READ)
@router.get("/pages/dags/{dag_id}/tasks/{task_id}", dependencies=MAY_READ)
@router.get("/pages/dags/{dag_id}/runs/{run_id}/tasks/{task_id}", dependencies=MAY_READ)
def of_a_dag(dag_id: str) -> Response:  # noqa: ARG001 - the permission depends on it
    """The pages of a DAG, of a task, and of one run."""
    return _shell()


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A file of the pages' script; it contains no data of users."""
    if name not in _FILES or not (STATIC / name).exists():
        raise HTTPException(status.HTTP_404_NOT_FOUND, "there is no such file")
    return FileResponse(
        STATIC / name, media_type=_FILES[name], headers={"Cache-Control": "no-cache"}
    )


async def refused(request: Request, error: Exception) -> Response:
    """The answer to a request that fails: in a browser a page that says why, otherwise JSON."""
    if "text/html" not in request.headers.get("Accept", ""):
        if isinstance(error, RequestValidationError):
            return await request_validation_exception_handler(request, error)
        return await http_exception_handler(request, cast(HTTPException, error))
    if isinstance(error, HTTPException):
        code, why = error.status_code, str(error.detail)
        why = _NOT_LOGGED_IN if code == status.HTTP_401_UNAUTHORIZED else why
    else:
        code, why = 422, _NOT_COMPLETE
    said = escape(why, quote=True)
    return _page(f' data-message="{said}">{said}', code)


async def with_headers(
    request: Request, answer: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Adds the headers that restrict what a page may load and who may embed it."""
    response = await answer(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _shell() -> Response:
    if not (STATIC / "pages.js").exists():
        raise HTTPException(
            status.HTTP_404_NOT_FOUND,
            "the script of the pages is missing: install the wheel, or run `make pages`",
        )
    return _page(">", status.HTTP_200_OK)


def _page(message: str, code: int) -> Response:
    base = escape(base_path() + PREFIX, quote=True)
    return HTMLResponse(_SHELL.format(base=base, message=message), code)
