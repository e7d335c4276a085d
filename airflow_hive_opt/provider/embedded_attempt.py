"""One attempt on the embedded Spark, whose statement may repeat rows.

A retry takes the outcome of an attempt before it that is done. Its statement does not begin if one
of them may have added its rows; see :mod:`airflow_hive_opt.documents.claims`.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import (
    Job,
    Outcome,
    Stages,
    Status,
    outcome_if_any,
    write_outcome,
)
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.provider.airflow_compat import AirflowException, ObjectStoragePath
from airflow_hive_opt.provider.attempts import cause_of
from airflow_hive_opt.provider.outcome import masked
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.added_rows import may_repeat_rows

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

log = logging.getLogger(__name__)

# The settings that say which tables the names of a statement mean. Others, such as the credentials
# of a session, may change from attempt to attempt.
_TABLES = re.compile(
    r"spark\.sql\.(warehouse\.dir|defaultCatalog"
    r"|catalog\.[^.]+(\.(uri|type|catalog-impl|warehouse))?)"
    r"|spark\.(hadoop\.)?(hive\.metastore\.(uris|glue\.catalogid)|javax\.jdo\.option\.ConnectionURL"
    r"|aws\.region)"
)


@dataclass(frozen=True)
class EmbeddedAttempt:
    """An attempt: its job, and how one that an earlier attempt has done ended.

    The job has a token if its statement may repeat rows.
    """

    job: Job
    done: Outcome | None = None

    @classmethod
    def claimed(cls, job: Job, context: Context, settings: Mapping[str, str]) -> EmbeddedAttempt:
        """The attempt, after it has claimed its task; ``settings`` are Spark's.

        Raises ``AirflowException`` if the storage fails.
        """
        writes = job.stages in (Stages.MAP_JOIN, Stages.BOTH)
        if not (writes and may_repeat_rows(job.statement)):
            return cls(job)
        path, token = ObjectStoragePath(job.path), uuid4().hex
        try:
            earlier = claims.take(path, token, _cause(job, context, settings))
            for each in reversed(earlier):
                outcome = outcome_if_any(each.path_beside(path), each.token)
                if outcome is not None and outcome.status is Status.DONE:
                    log.info(
                        "attempt %s has run the statement, so its outcome counts. To run the "
                        "statement again, clear the task",
                        each.attempt,
                    )
                    return cls(job, outcome)
        except DescriptorError as error:
            raise without_stack(AirflowException(str(error))) from None
        return cls(replace(job, token=token))

    def tell(self, outcome: Outcome, was_stopped: bool) -> None:
        """Keeps the outcome for a retry.

        The error of a statement that ``was_stopped`` may have come after its commit.
        """
        if not self.job.token:
            return
        may_have_written = outcome.may_have_written or was_stopped
        kept = replace(outcome, message=masked(outcome.message), may_have_written=may_have_written)
        try:
            write_outcome(replace(kept, token=self.job.token), ObjectStoragePath(self.job.path))
        except DescriptorError as error:  # the statement may have run
            log.warning("a retry will not know how this attempt has ended: %s", error)


def _cause(job: Job, context: Context, settings: Mapping[str, str]) -> str:
    """What a retry has in common with the attempts before it whose rows are those of its own."""
    tables = sorted(item for item in settings.items() if _TABLES.fullmatch(item[0]))
    work = repr((job.sql, job.query_digest, tables))
    digest = hashlib.sha256(work.encode()).hexdigest()
    return f"embedded_{digest[:12]}_{cause_of(context)}"
