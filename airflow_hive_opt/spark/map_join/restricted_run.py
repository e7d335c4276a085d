"""Runs the most restricted text of a statement that Spark can plan, on a branch if it needs one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.spark.map_join.branch import branch_for, published
from airflow_hive_opt.spark.map_join.execution import Answer, execute
from airflow_hive_opt.spark.map_join.texts import Restricted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Begins = Callable[[str, Optional[str], Optional[Descriptor]], AbstractContextManager[None]]
"""Gets a text, Spark's objection to an earlier one, and the descriptor with its conditions."""


def run_restricted(
    session: SparkSession, job: Job, restricted: Restricted, begins: Begins
) -> tuple[Answer, Optional[Descriptor]]:
    """Runs the job's statement, see :func:`~airflow_hive_opt.spark.map_join.execution.execute`.

    ``begins`` makes the block in which a text runs that writes. Returns the answer, and the
    descriptor with the conditions that were used; ``None`` if the user's own text ran.
    """
    with branch_for(session, restricted.descriptor) as branch:
        found = restricted.texts(branch.full_name if branch else None)
        texts = {each.text: each for each in reversed(found)}

        def used(text: str) -> Optional[Descriptor]:
            return texts[text].descriptor if text in texts else None

        def runs(text: str, objection: str | None) -> AbstractContextManager[None]:
            block = begins(text, objection, used(text))
            is_on_branch = text in texts and texts[text].on_branch
            return published(branch, block) if branch and is_on_branch else block

        names = (*(each.text for each in found), job.statement)
        answer = execute(session, names, job.parameters, job.show_rows, runs)
    return answer, used(answer.text)
