"""``MapJoinOperator``: prelaunch and join; the second half of the split form."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.operators.statement import StagesName, StatementOperator
from airflow_hive_opt.provider.airflow_compat import AirflowFailException, AirflowSkipException

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.spark.application.job import Job


class MapJoinOperator(StatementOperator):
    """Runs a star join on the partitions that its local task wrote down.

    The descriptor is verified first: another statement's, another attempt's or an altered one is
    refused. Partitions that have gone meanwhile are dropped. The statement must render to the same
    text here as in the local task, so a template in it must not speak of the task, the attempt or
    the clock.

    :param descriptor: the local task's output. (templated)

    Further arguments: :class:`~airflow_hive_opt.operators.statement.StatementOperator`.
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

    def job(self, context: Context) -> Job:
        """See :meth:`StatementOperator.job`; skips after a dry local task."""
        found = self.descriptor
        if not isinstance(found, Mapping) or not {"uri", "digest"} <= found.keys():
            raise AirflowFailException(
                f"descriptor must be the output of a LocalTaskOperator, not {found!r}. If the "
                "local task was skipped, so should be this task: leave its trigger rule alone"
            )
        if found.get("dry"):
            raise AirflowSkipException("the local task was dry: nothing is joined")
        job = super().job(context)
        try:
            digest = job.query_digest()
        except ValueError as error:
            raise AirflowFailException(str(error)) from None
        if digest != found.get("query_digest"):
            raise AirflowFailException(
                "the statement or its parameters are not those of the local task. Look at both "
                "tasks' rendered templates: a template that speaks of the task, the attempt or the "
                "clock gives another text in each of them"
            )
        return dataclasses.replace(job, descriptor=str(found["uri"]), digest=str(found["digest"]))
