"""Runs the most restricted text of a statement that Spark can plan, on a branch if it needs one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.indexed_scans import IndexCode
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.restriction.indexed import with_reason
from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.map_join.branch import Branch, branch_for, published
from airflow_hive_opt.spark.map_join.execution import Answer, Beginning, execute
from airflow_hive_opt.spark.map_join.group_filter import settings_of
from airflow_hive_opt.spark.map_join.planned_scans import with_files_of_plan
from airflow_hive_opt.spark.map_join.texts import Restricted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Begins = Callable[[Beginning, Optional[Descriptor]], AbstractContextManager[None]]
"""Gets a text that is about to run, and the descriptor with its conditions."""


def run_restricted(
    session: SparkSession, job: Job, restricted: Restricted, begins: Begins
) -> tuple[Answer, Optional[Descriptor]]:
    """Runs the job's statement, see :func:`~airflow_hive_opt.spark.map_join.execution.execute`.

    ``begins`` makes the block in which a text runs that writes. Returns the answer, and the
    descriptor with the conditions that were used and the files that they leave; ``None`` if the
    user's own text ran. Raises :class:`~airflow_hive_opt.documents.gates.JoinStopped`: a text
    without the conditions by a key index may read more than the gates allow.
    """
    whole = restricted.descriptor
    with branch_for(session, whole, job.path) as branch:
        if isinstance(branch, str):
            found = restricted.texts(None, branch)
        else:
            found = restricted.texts(branch.full_name)
        texts = {each.text: each for each in reversed(found)}
        ran_on_branch = False

        def used(text: str, objection: str | None) -> Optional[Descriptor]:
            if text not in texts:
                return None
            code = IndexCode.NOT_PUBLISHED if ran_on_branch else IndexCode.NO_BRANCH
            return with_reason(texts[text].descriptor, code, objection or "")

        def runs(beginning: Beginning) -> AbstractContextManager[None]:
            nonlocal ran_on_branch
            text = beginning.text
            descriptor = used(text, beginning.objection)
            if descriptor is not None and descriptor.index_filters != whole.index_filters:
                job.gates.check(_counted(session, descriptor))
            block = begins(beginning, descriptor)
            if isinstance(branch, Branch) and text in texts and texts[text].on_branch:
                ran_on_branch = True
                return published(branch, block)
            return block

        answer = execute(
            session,
            (*(each.text for each in found), job.statement),
            job.parameters,
            job.show_rows,
            runs,
            {
                each.text: settings_of(job.statement, each.descriptor)
                for each in found
                if each.descriptor.index_filters
            },
        )
    ran = used(answer.text, answer.objection)
    return answer, None if ran is None else with_files_of_plan(session, ran, answer.plan)


def _counted(session: SparkSession, descriptor: Descriptor) -> Descriptor:
    """The descriptor with the files that its conditions leave now."""
    files = tuple(counted(session, found) for found in descriptor.planned_files)
    return replace(descriptor, planned_files=files)
