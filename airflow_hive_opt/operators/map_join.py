"""``MapJoinOperator``: the second task of the split form; runs the statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.operators.statement import StagesName, StatementOperator
from airflow_hive_opt.provider.handed_over import check_local_task, check_statement

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job
    from airflow_hive_opt.provider.airflow_compat import Context


class MapJoinOperator(StatementOperator):
    """Runs a star join on the partitions in its local task's descriptor.

    First verifies the descriptor: it must belong to this statement and to this local task's
    attempt, and must be unchanged. Partitions that no longer exist are dropped. The statement must
    render to the same text as in the local task, so its templates must not use the task, the
    attempt or the current time.

    :param descriptor: the output of the
        :class:`~airflow_hive_opt.operators.local_task.LocalTaskOperator`, or of a
        :class:`~airflow_hive_opt.sensors.partition_descriptor.PartitionDescriptorSensor`.
        (templated)

    For all other arguments, see :class:`~airflow_hive_opt.operators.statement.StatementOperator`.
    """

    stages: ClassVar[StagesName] = "map join"
    template_fields: Sequence[str] = (*StatementOperator.template_fields, "descriptor")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **StatementOperator.template_fields_renderers,
        "descriptor": "json",
    }

    def __init__(self, *, sql: str, descriptor: Any, **kwargs: Any) -> None:
        super().__init__(sql=sql, **kwargs)
        self.descriptor = descriptor

    def job(self, context: Context, **fields: Any) -> Job:
        """See :meth:`StatementOperator.job`; skips the task after ``prune_only``."""
        found = check_local_task(self.descriptor, "nothing is joined")
        uri, digest = str(found["uri"]), str(found["digest"])
        job = super().job(context, descriptor=uri, digest=digest, **fields)
        check_statement(found, job.query_digest)
        return job
