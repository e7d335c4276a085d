"""Why a page has nothing to show, in words."""

from __future__ import annotations

_NAMES = ("MapJoinPruneOperator", "LocalTaskOperator", "MapJoinOperator")
_OURS = (*_NAMES, "_MapJoinPruneDecoratedOperator")
_ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")


def why_nothing(operator: str, state: str | None) -> str:
    """Why a task instance of this operator has no figures.

    >>> why_nothing("RequiredPartitionsSensor", "success")
    'a RequiredPartitionsSensor waits and runs no statement, so there is nothing to show here'
    >>> why_nothing("MapJoinPruneOperator", "running")
    'there is nothing to show yet: the figures of a run appear when its local task has ended'
    """
    if operator.endswith("Sensor"):
        return f"a {operator} waits and runs no statement, so there is nothing to show here"
    if operator not in _OURS:
        names = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"
        return (
            f"there is nothing to show here: {operator or 'this task'} has left no figures of "
            f"partition pruning, as a {names} does"
        )
    if state in _ENDED:
        return (
            "this run has left no figures: it ended before the end of its local task, or Airflow "
            "has deleted its XComs. See the task's log"
        )
    return "there is nothing to show yet: the figures of a run appear when its local task has ended"
