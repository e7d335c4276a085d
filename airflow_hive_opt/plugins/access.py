"""Who may open the pages of this plugin."""

from __future__ import annotations

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api import security
from fastapi import Depends, HTTPException, Request, status

from airflow_hive_opt.provider.airflow_compat import pages_accept_browser_logins


def _login_is_known(request: Request) -> None:
    if not pages_accept_browser_logins() and "Authorization" not in request.headers:
        raise HTTPException(
            status.HTTP_401_UNAUTHORIZED,
            "in a browser these pages need Airflow 3.1; before 3.1, send a token: "
            "curl -H 'Authorization: Bearer TOKEN'",
        )


LOGIN = [Depends(_login_is_known), Depends(security.get_user)]
"""Any user who is logged in."""

MAY_READ = [
    Depends(_login_is_known),
    Depends(security.requires_access_dag("GET", DagAccessEntity.XCOM)),
]
"""A user who may read the XComs of the path's DAG, because the pages show what is in them."""
