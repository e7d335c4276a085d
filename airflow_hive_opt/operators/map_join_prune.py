"""``MapJoinPruneOperator``: prune and join in one task, in one Spark application."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.statement import StagesName
from airflow_hive_opt.provider.airflow_compat import AirflowSkipException

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.spark.application.job import Job


class MapJoinPruneOperator(LocalTaskOperator):
    """Runs a star join on Spark and reads only the partitions that its small tables call for.

    Before the statement runs, the distinct keys of its small tables are collected, the metastore
    is asked which partitions of the big tables match, and each big table's scan is narrowed to
    them. The result is that of the statement as it stands; what can't be pruned is read whole,
    and the log says why.

    With ``dry`` nothing is joined: the summary goes to XCom and the task is skipped, so that
    nothing downstream takes it for a run.

    Arguments and XCom: :class:`~airflow_hive_opt.operators.local_task.LocalTaskOperator`.
    """

    stages: ClassVar[StagesName] = "both"

    def execute(self, context: Context) -> Any:
        """Prunes, joins, and returns the summary that goes to XCom."""
        summary = super().execute(context)
        if summary["dry"]:
            context["ti"].xcom_push(key="return_value", value=summary)
            raise AirflowSkipException("dry is true: nothing was joined")
        return summary

    def job(self, context: Context) -> Job:
        """See :meth:`StatementOperator.job`."""
        from airflow_hive_opt.spark.application.job import Stages

        job = super().job(context)
        return dataclasses.replace(job, stages=Stages.LOCAL_TASK) if self.is_dry() else job
