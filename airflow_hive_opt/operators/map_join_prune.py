"""``MapJoinPruneOperator``: prunes and joins in one task and one Spark application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.statement import StagesName
from airflow_hive_opt.provider.airflow_compat import AirflowSkipException

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.provider.airflow_compat import Context


class MapJoinPruneOperator(LocalTaskOperator):
    """Runs a star join on Spark and reads only the partitions that match its small tables' keys.

    Before the statement runs, the operator collects the distinct keys of its small tables. It looks
    up the matching partitions of the big tables in the metastore and restricts each big table's
    scan to them. The result is the same as that of the unchanged statement. A scan that can't be
    pruned reads its whole table, and the log says why.

    With ``prune_only`` it does not join. The summary goes to XCom and the task ends as skipped, so
    that no downstream task treats it as a run.

    For arguments and XCom, see :class:`~airflow_hive_opt.operators.local_task.LocalTaskOperator`.
    """

    stages: ClassVar[StagesName] = "both"

    def finish(self, context: Context, outcome: Outcome) -> Any:
        """Returns the summary for XCom; skips the task after ``prune_only``."""
        summary = super().finish(context, outcome)
        if summary["prune_only"]:
            context["ti"].xcom_push(key="return_value", value=summary)
            raise AirflowSkipException("prune_only is true, so nothing was joined")
        return summary

    def job(self, context: Context, **fields: Any) -> Job:
        """See :meth:`StatementOperator.job`."""
        stages = "local task" if self.only_prunes() else self.stages
        return super().job(context, stages=stages, **fields)
