"""What the task's run before this one found out, from its XCom."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.index_trial import IndexTrial, TrialArm

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

log = logging.getLogger(__name__)
_ONE_IN_TEN, _THREE_IN_TWENTY, _ONE_IN_FOUR = 26, 38, 64  # of the 256 values of a byte
_ENDLESS = 1e9  # seconds


def skipped_of(context: Context) -> dict[str, Any]:
    """The job's ``skipped_keys``, ``skipped_indexes`` and ``index_trial``.

    Empty if the task has no earlier run, or if its summary can't be read: then all are read. About
    one run in ten reads keys whatever an earlier run says: if runs have no logical date, Airflow
    may return another run as the last one, whose count of runs would never grow. For the same
    reason, the run's name decides which runs go another way to compare. A retry uses the indexes:
    the attempt before it may have failed because it had none.
    """
    instance: Any = context["ti"]
    try:
        summary = instance.xcom_pull(
            task_ids=instance.task_id,
            include_prior_dates=True,
            map_indexes=getattr(instance, "map_index", -1),
        )
    except Exception as error:  # noqa: BLE001 - the run does not depend on it
        log.debug("the summary of the run before this one can't be read: %s", error)
        return {}
    drawn = hashlib.sha256(str(instance.run_id).encode()).digest()
    reads_all, compares = drawn[0] < _ONE_IN_TEN, drawn[1] < _THREE_IN_TWENTY
    is_retry = instance.try_number > 1
    counts = not is_retry and not reads_all
    trial = replace(
        index_trial_in(summary),
        tries=list(TrialArm)[drawn[2] % len(TrialArm)] if counts and compares else None,
        tries_far_slower=drawn[3] < _ONE_IN_FOUR,
        counts=counts,
        is_retry=is_retry,
    )
    if reads_all:
        return {"index_trial": trial}
    return {
        "skipped_keys": skipped_keys_in(summary),
        "skipped_indexes": skipped_indexes_in(summary),
        "index_trial": trial,
    }


def skipped_keys_in(summary: object) -> dict[str, int]:
    """The skipped keys in a summary for XCom, perhaps of another version of this package.

    >>> decision = {"alias": "f", "skipped_keys": {"digest": "6ff1", "runs": 2}}
    >>> skipped_keys_in({"decisions": [decision]}), skipped_keys_in("a text")
    ({'6ff1': 2}, {})
    >>> use = {"code": "USED", "skipped_keys": {"digest": "07ac", "runs": 0}}
    >>> skipped_keys_in({"decisions": [{"indexes": [use]}]})
    {'07ac': 0}
    """
    found = dict(index_trial_in(summary).skipped_keys)
    for decision in _mappings_in(summary, "decisions"):
        for keys in (decision, *_mappings_in(decision, "indexes")):
            skipped = keys.get("skipped_keys")
            if isinstance(skipped, Mapping):
                found |= _counts({skipped.get("digest"): skipped.get("runs")})
    return found


def skipped_indexes_in(summary: object) -> dict[str, int]:
    """The tables in a summary whose key indexes need not be tried.

    >>> uses = [{"code": "NOT_PUBLISHED"}], [{"code": "NOT_TRIED_AGAIN", "runs": 3}], [{}]
    >>> tables = zip(["l.a", "l.b", "l.c"], uses)
    >>> skipped_indexes_in({"decisions": [{"table": t, "indexes": use} for t, use in tables]})
    {'l.a': 0, 'l.b': 3}
    """
    found = dict(index_trial_in(summary).skipped_indexes)
    for decision in _mappings_in(summary, "decisions"):
        table = decision.get("table")
        for use in _mappings_in(decision, "indexes"):
            code = use.get("code")
            runs = {"NOT_PUBLISHED": 0, "NOT_TRIED_AGAIN": use.get("runs")}.get(str(code))
            if isinstance(table, str) and type(runs) is int and runs >= 0:
                found[table] = runs
    return found


def index_trial_in(summary: object) -> IndexTrial:
    """What a summary says of the times of a task's runs; nothing is known if it can't be read.

    >>> index_trial_in({"index_trial": {"used": 8.1, "left_out": None, "of": 1}}).used
    8.1
    >>> index_trial_in({"index_trial": {"used": float("nan")}}) == index_trial_in("a text")
    True
    """
    trial = summary.get("index_trial") if isinstance(summary, Mapping) else None
    if not isinstance(trial, Mapping):
        return IndexTrial()
    used, left_out, untouched = times = [trial.get(arm.value) for arm in TrialArm]
    if not any(times) or not all(time is None or _is_time(time) for time in times):
        return IndexTrial()
    keys, indexes = (_counts(trial.get(name)) for name in ("skipped_keys", "skipped_indexes"))
    may_be_untouched = trial.get("may_be_untouched") is True
    statement = str(trial.get("statement", ""))
    return IndexTrial(statement, used, left_out, untouched, may_be_untouched, keys, indexes)


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value < _ENDLESS


def _counts(found: object) -> dict[str, int]:
    """The numbers of runs by digest, as far as they are some."""
    pairs = found.items() if isinstance(found, Mapping) else ()
    return {
        name: runs
        for name, runs in pairs
        if isinstance(name, str) and type(runs) is int and runs >= 0
    }


def _mappings_in(of: object, name: str) -> list[Mapping[str, Any]]:
    listed = of.get(name) if isinstance(of, Mapping) else None
    if not isinstance(listed, (list, tuple)):
        return []
    return [each for each in listed if isinstance(each, Mapping)]
