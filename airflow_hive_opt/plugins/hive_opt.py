"""The ``airflow.plugins`` entry point: serves the pages of the operators' links."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_hive_opt.plugins import PREFIX


class HiveOptPlugin(AirflowPlugin):
    """Serves the descriptor and its explanation below :data:`PREFIX` on the API server."""

    name = "hive_opt"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The application, created only on access, because workers load plugins too."""
        from airflow_hive_opt.plugins.pages import application

        return [{"app": application(), "url_prefix": PREFIX, "name": "Hive Opt"}]
