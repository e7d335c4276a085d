"""The output of a local task, as the tasks after it get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_hive_opt.provider.airflow_compat import AirflowFailException, AirflowSkipException


def check_local_task(found: Any, not_done: str) -> Mapping[str, Any]:
    """The output of a local task; skips the task if the run only prunes.

    ``not_done`` says what a skipped task does not do. Raises ``AirflowFailException`` and
    ``AirflowSkipException``.
    """
    if not isinstance(found, Mapping) or not {"uri", "digest"} <= found.keys():
        raise AirflowFailException(
            f"descriptor must be the output of a LocalTaskOperator, not {found!r}. If the "
            "local task was skipped, this task must be skipped too: keep its default trigger "
            "rule"
        )
    if found.get("prune_only"):
        raise AirflowSkipException(f"prune_only is true for the local task, so {not_done}")
    return found


def check_statement(found: Mapping[str, Any], query_digest: str) -> None:
    """Raises ``AirflowFailException`` if the output belongs to another statement."""
    if query_digest != found.get("query_digest"):
        raise AirflowFailException(
            "the statement or its parameters are not those of the local task. Look at both "
            "tasks' rendered templates: a template that uses the task, the attempt or the "
            "time renders a different text in each task"
        )
