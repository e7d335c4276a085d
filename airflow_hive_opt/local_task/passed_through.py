"""The descriptor of a statement that passes through to Spark."""

from __future__ import annotations

from airflow_hive_opt.documents.descriptor import Decision, Descriptor, now
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.restriction.row_changes import SOURCE_CHANGED
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.tables import reads_no_rows

# What a decision is about if the planner knows no scan.
_WHOLE_STATEMENT = ScanRef("the statement", "", None, "the statement")

_OWN_CODES = {
    SOURCE_CHANGED: Reason.SOURCE_CHANGED,
    **{each.sentence: each for each in (Reason.PLANNING_TOO_LONG, Reason.LEFT_TO_SPARK)},
}
"""The reason codes of statements that pass through for other reasons than their form."""


def passed_through(job: Job, why: str) -> Descriptor:
    """A descriptor without a partition list; its decision says why."""
    reason = _OWN_CODES.get(why, Reason.PASSED_THROUGH)
    message = reason.sentence if why in _OWN_CODES else f"{reason.sentence}: {why}"
    if reads_no_rows(job.statement):
        return Descriptor(job.query_digest, now(), (), ())
    return Descriptor(job.query_digest, now(), (), (Decision(_WHOLE_STATEMENT, reason, message),))
