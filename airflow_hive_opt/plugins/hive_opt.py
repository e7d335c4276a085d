"""The ``airflow.plugins`` entry point: macros, and the pages, which it puts into Airflow's own."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_hive_opt.plugins.macros import restricted_sql

_NAME = "Pruning"  # a longer name does not fit Airflow's menu
# By Airflow's page: the last part of the tab's address, and our page in the tab. Airflow puts its
# own ids in place of the words in braces.
_VIEWS = {
    "nav": ("partition-pruning", "/"),
    "dag": ("pruning-of-dag", "/dags/{DAG_ID}"),
    "task": ("pruning-of-task", "/dags/{DAG_ID}/tasks/{TASK_ID}"),
    "task_instance": (
        "pruning",
        "/dags/{DAG_ID}/runs/{RUN_ID}/tasks/{TASK_ID}?map_index={MAP_INDEX}",
    ),
}


class HiveOptPlugin(AirflowPlugin):
    """Adds the macros, and serves the pages below ``/hive_opt`` and as tabs of Airflow's pages."""

    name = "hive_opt"
    macros = [restricted_sql]

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The application, created only on access, because workers load plugins too."""
        from airflow_hive_opt.links.pages import PREFIX
        from airflow_hive_opt.plugins.pages import application

        return [{"app": application(), "url_prefix": PREFIX, "name": "Hive Opt"}]

    @property
    def external_views(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The tabs, which Airflow has since 3.1."""
        from airflow_hive_opt.links.pages import PREFIX, base_path

        below = f"{base_path()}{PREFIX}/pages"
        return [
            {"name": _NAME, "destination": page, "url_route": route, "href": below + path}
            for page, (route, path) in _VIEWS.items()
        ]
