"""What a task needs of Airflow's Spark provider to submit an application, for all its versions.

Only modules that may submit an application import this one. The provider imports the clients of
Kubernetes and OpenLineage, which takes about as long as the import of Airflow.
"""

from __future__ import annotations

from typing import Any

from airflow_hive_opt.provider.airflow_compat import HAS_SPARK_PROVIDER, BaseOperator

__all__ = (
    "RESUMES",
    "SparkSubmitOperator",
    "check_submit_arguments",
    "follows_application",
    "looks_for_earlier",
)

if HAS_SPARK_PROVIDER:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
else:

    class SparkSubmitOperator(BaseOperator):  # type: ignore[no-redef]
        """Replaces the Spark provider's operator if it is not installed; it can't submit."""

        template_fields = ("conf",)

        def __init__(self, *, conn_id: str = "", **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self._conn_id = conn_id


try:
    from airflow.sdk.bases.resumablejobmixin import ResumableJobMixin
except ImportError:  # before Airflow 3.3
    RESUMES = False
else:
    RESUMES = issubclass(SparkSubmitOperator, ResumableJobMixin)
"""Whether a retry can follow the application of the attempt before it."""


def check_submit_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments for ``SparkSubmitOperator``; raises ``TypeError`` for unsupported ones."""
    if RESUMES or "durable" not in arguments:
        return arguments
    if arguments["durable"]:
        raise TypeError("durable=True needs Airflow 3.3 and its Spark provider 6.1")
    return {name: value for name, value in arguments.items() if name != "durable"}


def follows_application(operator: Any, hook: Any) -> bool:
    """Whether Airflow can follow the submitted application by its ID until it ends."""
    if not RESUMES:
        return False
    if getattr(hook, "_is_kubernetes", False):
        follows = getattr(hook, "_should_track_driver_via_k8s_api", None)
        return follows is not None and bool(follows())
    on_yarn = getattr(hook, "_is_yarn_cluster_mode", False)
    return not on_yarn or bool(operator._yarn_track_via_rm_api)


def looks_for_earlier(operator: Any, hook: Any) -> bool:
    """Whether Airflow looks for an earlier attempt's application before it submits one."""
    in_cluster = hook._connection["deploy_mode"] == "cluster"
    return bool(in_cluster) and follows_application(operator, hook)
