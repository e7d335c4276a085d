"""What a task's log shows of a run, for everybody who may read the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.runtime.log_text import plain
from airflow_hive_opt.version_compat import redact

if TYPE_CHECKING:
    from airflow_hive_opt.spark.job import Outcome


def masked(text: str) -> str:
    """The text without what Airflow knows to be a secret."""
    return str(redact(text))


def log_outcome(log: Any, outcome: Outcome) -> None:
    """A SELECT's first rows, work by phase, and in the last line what was kept.

    Rows may hold secrets, which are masked, and what would act on the log, which is escaped.
    """
    if outcome.columns and outcome.rows:
        log.info("the first %d rows:", len(outcome.rows))
        for row in (outcome.columns, *outcome.rows):
            log.info("%s", "\t".join(plain(masked(value)) for value in row))
    summary = outcome.summary or {}
    for phase, seconds in summary.get("seconds", {}).items():
        if (work := summary["work"][phase]) is None:
            log.info("%s: %.1f s, over Spark Connect its work is not told", phase, seconds)
            continue
        log.info(
            "%s: %.1f s, %d metastore calls, %d partitions fetched, %d files listed",
            phase,
            seconds,
            work["metastore_calls"],
            work["partitions_fetched"],
            work["files_listed"],
        )
    log.info("%s", masked(outcome.message))
