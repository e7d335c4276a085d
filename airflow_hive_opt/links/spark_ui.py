"""The link to Spark's own page of the application."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_hive_opt.provider.airflow_compat import BaseOperatorLink
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import BaseOperator, TaskInstanceKey


class SparkUILink(BaseOperatorLink):
    """Spark's page of the application, where it is known.

    While a statement runs in the task's own process with ``spark.ui.enabled``, that process's own
    page; afterwards ``[hive_opt] spark_ui_url``, say a history server, with the application's id.
    """

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """The address, or nothing where no server is configured or no application ran."""
        application = (getattr(operator, "summary", None) or {}).get("application_id")
        address = airflow_conf.get("hive_opt", "spark_ui_url", fallback="")
        return address.replace("{application_id}", quote(application)) if application else ""
