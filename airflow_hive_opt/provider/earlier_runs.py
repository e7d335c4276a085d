"""What the task's run before this one found out, from its XCom."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

log = logging.getLogger(__name__)
_ONE_IN_TEN = 26  # of the 256 values of a byte


def unasked_of(context: Context) -> dict[str, int]:
    """The questions that need not be asked, for the job's ``unasked``.

    Empty if the task has no earlier run, or if its summary can't be read: then all are asked. About
    one run in ten asks whatever an earlier run says: Airflow may name a run as the last one that
    is not, if runs have no logical date, and then nobody would count.
    """
    instance: Any = context["ti"]
    if hashlib.sha256(str(instance.run_id).encode()).digest()[0] < _ONE_IN_TEN:
        return {}
    try:
        summary = instance.xcom_pull(
            task_ids=instance.task_id,
            include_prior_dates=True,
            map_indexes=getattr(instance, "map_index", -1),
        )
    except Exception as error:  # noqa: BLE001 - the run does not depend on it
        log.debug("the summary of the run before this one can't be read: %s", error)
        return {}
    return unasked_in(summary)


def unasked_in(summary: object) -> dict[str, int]:
    """The questions in a summary for XCom, perhaps of another version of this package.

    >>> unasked_in({"decisions": [{"alias": "f", "question": {"digest": "6ff1", "unasked": 2}}]})
    {'6ff1': 2}
    >>> unasked_in("a text"), unasked_in({"decisions": [{"question": {"digest": "6ff1"}}]})
    ({}, {})
    """
    decisions = summary.get("decisions") if isinstance(summary, Mapping) else None
    found = {}
    for decision in decisions if isinstance(decisions, (list, tuple)) else ():
        question = decision.get("question") if isinstance(decision, Mapping) else None
        if isinstance(question, Mapping):
            digest, unasked = question.get("digest"), question.get("unasked")
            if isinstance(digest, str) and type(unasked) is int and unasked >= 0:
                found[digest] = unasked
    return found
