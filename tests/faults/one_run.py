"""One attempt, as a task runs it. Its exit code tells how it has ended.

python -m tests.faults.one_run JOB.json SPARK_SETTING=VALUE ...
"""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

from upath import UPath

from airflow_hive_opt.documents.job import Status, read_job
from airflow_hive_opt.provider.embedded_attempt import EmbeddedAttempt
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.session import spark_session

STATUSES = (Status.DONE, Status.FAILED, Status.REFUSED)
"""By exit code; an exception is a failure too."""


def main(job_path: str, *pairs: str) -> int:
    logging.basicConfig(level=logging.INFO)
    job = read_job(UPath(job_path))
    conf = dict(pair.split("=", 1) for pair in pairs)
    attempt = EmbeddedAttempt.claimed(job, {"ti": SimpleNamespace(max_tries=1)}, conf)
    outcome = attempt.done
    if outcome is None:
        with spark_session("one run", conf) as spark:
            outcome = run_job(spark, attempt.job)
            attempt.tell(outcome, was_stopped=False)
    logging.info("%s: %s", outcome.status, outcome.message)
    return STATUSES.index(outcome.status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
