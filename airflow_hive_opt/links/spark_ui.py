"""The link to Spark's own page for the application."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_hive_opt.provider.airflow_compat import BaseOperatorLink
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import BaseOperator, TaskInstanceKey


class SparkUILink(BaseOperatorLink):
    """Spark's page for the application, if it is known.

    While a statement runs in the task's process with ``spark.ui.enabled``, this is the page of that
    process. Afterwards it is ``[hive_opt] spark_ui_url``, for example a history server, with the
    application's ID.
    """

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """The address; empty if no server is configured or no application ran."""
        application = (getattr(operator, "summary", None) or {}).get("application_id")
        address = airflow_conf.get("hive_opt", "spark_ui_url", fallback="")
        return address.replace("{application_id}", quote(application)) if application else ""
