"""A statement on the embedded Spark, as a task runs it; prints its outcome."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from airflow_hive_opt.commands.arguments import BAD_INPUT, FAILED
from airflow_hive_opt.commands.statement_check import show_error
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.embedded_warehouse import default_warehouse, embedded_conf
from airflow_hive_opt.spark.session.java import SparkStartError
from airflow_hive_opt.spark.session.session import spark_session


def run_embedded(job: Job, warehouse: Path | None, conf: Mapping[str, str], rows: int) -> int:
    """Runs ``job`` and prints its outcome or its error; returns the exit code.

    The descriptor of a job without a ``path`` goes to a folder of the warehouse, under the
    statement's digest. ``warehouse`` is the default one if it is ``None``. ``conf`` are Spark's
    settings. ``rows`` is how many rows of a SELECT are printed.
    """
    warehouse = warehouse or default_warehouse()
    default = warehouse / "descriptors" / f"{job.query_digest[:16]}.json"
    job = dataclasses.replace(job, path=job.path or str(default))
    try:
        with spark_session("airflow-hive-opt", {**embedded_conf(warehouse), **conf}) as session:
            outcome = run_job(session, job)
    except SparkStartError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    if outcome.status is not Status.DONE:
        show_error(outcome.message, job.sql)
        return BAD_INPUT if outcome.status is Status.REFUSED else FAILED
    if job.stages is Stages.LOCAL_TASK:
        print(json.dumps(outcome.summary, indent=1))
    else:
        _print_rows(outcome, rows)
    print(outcome.message, file=sys.stderr)
    return 0


def _print_rows(outcome: Outcome, rows: int) -> None:
    for row in (outcome.columns, *outcome.rows[:rows]) if outcome.columns else ():
        print("\t".join(row))
    if len(outcome.rows) > rows:
        print(f"... and more: these are the first {rows}", file=sys.stderr)
