"""One attempt on the embedded Spark, whose statement may add rows.

A retry takes the outcome of an attempt before it that is done. Its statement does not begin if one
of them may have added its rows; see :mod:`airflow_hive_opt.documents.claims`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status, read_outcome, write_outcome
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.provider.airflow_compat import AirflowException, ObjectStoragePath
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.added_rows import may_repeat_rows

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

log = logging.getLogger(__name__)


def outcome_of_attempt(
    job: Job, context: Context, has_retries: bool, run: Callable[[Job], Outcome]
) -> Outcome:
    """The outcome of ``run`` for the job, or that of an earlier attempt that is done.

    Without retries no attempt does the work of an earlier one again. Raises ``AirflowException`` if
    the storage fails before the run.
    """
    writes = job.stages in (Stages.MAP_JOIN, Stages.BOTH)
    if not (has_retries and writes and may_repeat_rows(job.statement)):
        return run(job)
    path, token = ObjectStoragePath(job.path), uuid4().hex
    try:
        earlier = claims.take(path, token, _cause(job, context))
    except DescriptorError as error:
        raise without_stack(AirflowException(str(error))) from None
    for each in reversed(earlier):
        if (done := _done(path.with_name(f"{each.attempt}.json"), each.token)) is not None:
            log.info("attempt %s has run the statement: its outcome counts", each.attempt)
            return done
    outcome = replace(run(replace(job, token=token)), token=token)
    try:
        write_outcome(outcome, path)
    except DescriptorError as error:  # the statement may have run
        log.warning("a retry will not know how this attempt has ended: %s", error)
    return outcome


def _cause(job: Job, context: Context) -> str:
    """What a retry has in common with the attempt before it, and a cleared task has not."""
    instance: Any = context["ti"]
    return f"embedded_{job.digest_with({})[:12]}_{getattr(instance, 'max_tries', 0)}"


def _done(path: ObjectStoragePath, token: str) -> Outcome | None:
    try:
        outcome = read_outcome(path, token)
    except DescriptorError:
        return None
    return outcome if outcome.status is Status.DONE else None
