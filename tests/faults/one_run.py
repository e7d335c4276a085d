"""One attempt, as a task runs it.

python -m tests.faults.one_run JOB.json SPARK_SETTING=VALUE ...
"""

from __future__ import annotations

import logging
import sys

from upath import UPath

from airflow_hive_opt.documents.job import read_job, write_outcome
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.session import spark_session


def main(job_path: str, *pairs: str) -> None:
    logging.basicConfig(level=logging.INFO)
    job = read_job(UPath(job_path))
    with spark_session("one run", dict(pair.split("=", 1) for pair in pairs)) as spark:
        write_outcome(run_job(spark, job), UPath(job.path))


if __name__ == "__main__":
    main(*sys.argv[1:])
