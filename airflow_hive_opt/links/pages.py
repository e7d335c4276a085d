"""Links from a task instance to the pages that ``airflow_hive_opt.plugins.pages`` serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from airflow_hive_opt.provider.airflow_compat import HAS_PAGES, BaseOperatorLink
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import BaseOperator, TaskInstanceKey

PREFIX = "/hive_opt"
"""Where the API server serves the plugin's application."""
DESCRIPTOR_KEY = "hive_opt_descriptor"
"""XCom key of the URI of the descriptor that the attempt wrote or read."""


class DescriptorLink(BaseOperatorLink):
    """The run's partition descriptor as JSON, once the local task has written it."""

    name = "Partition descriptor"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page's path on the API server; empty if there is no descriptor."""
        return _page("descriptor", operator, ti_key)


class ExplainLink(BaseOperatorLink):
    """The pruning of each scan in plain text: with which keys, or why not."""

    name = "Explain pruning"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page's path on the API server; empty if there is no descriptor."""
        return _page("explain", operator, ti_key)


def base_path() -> str:
    """The path of ``[api] base_url``, below which the API server is published."""
    return str(urlsplit(airflow_conf.get("api", "base_url", fallback="")).path).rstrip("/")


def reason_page(code: str) -> str:
    """The address of the page about a reason code, below ``[api] base_url`` if it is set."""
    base = str(airflow_conf.get("api", "base_url", fallback="")).rstrip("/")
    return f"{base}{PREFIX}/pages/reasons#{code}" if HAS_PAGES else "docs/guides/troubleshooting.md"


def _page(page: str, operator: BaseOperator, ti_key: Any) -> str:
    """A path without a host: the browser may know the server by another name."""
    if not HAS_PAGES or getattr(operator, "summary", None) is None:
        return ""
    query = urlencode(
        {"run_id": ti_key.run_id, "task_id": ti_key.task_id, "map_index": ti_key.map_index}
    )
    return f"{base_path()}{PREFIX}/dags/{quote(ti_key.dag_id, safe='')}/{page}?{query}"
