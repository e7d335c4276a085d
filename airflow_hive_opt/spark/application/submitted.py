"""The application that spark-submit runs: reads a job from storage, writes its outcome there.

spark-submit --py-files airflow_hive_opt.zip main.py JOB_URI
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from upath import UPath

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import Job, Outcome, Status, read_job, write_outcome
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.prompt_answers import get_answers_at_once

TASK_PID_VARIABLE = "AIRFLOW_HIVE_OPT_TASK_PID"
"""Process id of the Airflow task, on the same machine as a driver in client mode."""

_SECONDS_BETWEEN_LOOKS = 2.0
log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job at the given URI; returns exit code 1 if a retry may help, else 0.

    Some cluster managers restart a failed application. A restart must not repeat a statement that
    Spark refuses, that had nothing to do, or that has run.
    """
    (uri,) = sys.argv[1:] if arguments is None else arguments
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("airflow_hive_opt").setLevel(logging.INFO)
    _end_with_the_task()
    try:
        job = read_job(UPath(uri))
    except DescriptorError as error:
        log.error("%s", error)
        return 1
    was_started_before = _has_begun(job)
    session = SparkSession.builder.enableHiveSupport().getOrCreate()
    get_answers_at_once(session)
    session.sparkContext.setLogLevel("WARN")
    outcome = Outcome(
        *(Status.FAILED, "the driver ended before the job did"),
        token=job.token,
        may_have_written=True,
    )
    try:
        log.info("application %s", session.sparkContext.applicationId)
        outcome = run_job(session, job)
    finally:
        if was_started_before:  # this outcome would hide what that driver may have written
            outcome = replace(outcome, may_have_written=True)
        told = _tell(outcome, UPath(job.path))
        _stop(session)
    if outcome.status is Status.DONE:
        return 0
    return int(outcome.status is Status.FAILED or not told)


def _has_begun(job: Job) -> bool:
    """Whether another driver has begun the job, whose cluster starts one again that has failed."""
    try:
        return claims.begun(UPath(job.path), job.token) is not None
    except DescriptorError:
        return True


def _tell(outcome: Outcome, path: UPath) -> bool:
    """Writes the outcome for the task; returns whether that succeeded."""
    try:
        write_outcome(outcome, path)
    except DescriptorError as error:
        log.error("the outcome is %s, but it can't be written: %s", outcome.status, error)
        return False
    return True


def _stop(session: SparkSession) -> None:
    try:
        session.stop()
    except Exception:
        log.warning("the session can't be stopped", exc_info=True)


def _end_with_the_task() -> None:
    """Ends the driver once the Airflow task is gone, so that it does not go on writing its table.

    Does nothing unless ``TASK_PID_VARIABLE`` is set.
    """
    task = int(os.environ.get(TASK_PID_VARIABLE, "0"))
    if not task:
        return

    def watch() -> None:
        while _lives(task):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        log.warning("the Airflow task %d is gone, so its application ends", task)
        os.kill(os.getppid(), signal.SIGTERM)  # spark-submit's JVM: runs its shutdown hooks
        os._exit(1)

    threading.Thread(target=watch, name="watch-the-task", daemon=True).start()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process runs as another user
        return True
    return not _is_zombie(process)


def _is_zombie(process: int) -> bool:
    """Whether a process has ended and nobody has asked how, as in a container without an init."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):  # it has gone meanwhile, or this is not Linux
        return False
    return state == "Z"


if __name__ == "__main__":
    sys.exit(main())
