"""The DAGs of ``benchmarks.backfill``: one statement a day in three ways, and an idle task."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG
from pendulum import datetime

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

SQL = (Path(__file__).parent / "sql" / "sales_of_the_day.sql").read_text()
# the example may be triggered without a date; plain spark-submit reads no comment
SQL = SQL.partition("\n")[2].replace("ds | default(params.day, true)", "ds")
os.environ["AIRFLOW_CONN_THIS_MACHINE"] = json.dumps({"conn_type": "spark", "host": "local[2]"})


def dag(name: str) -> DAG:
    return DAG(
        name,
        schedule="@daily",
        start_date=datetime(2000, 11, 1),
        end_date=datetime(2000, 11, 30),
        catchup=False,
        max_active_runs=4,
    )


def use(session: str, context: object) -> None:  # noqa: ARG001
    os.environ["AIRFLOW__HIVE_OPT__SESSION"] = session


for session in ("task", "shared"):
    with dag(f"session_{session}"):
        MapJoinPruneOperator(
            task_id="sales_of_the_day",
            sql=SQL,
            conn_id="this_machine",
            on_no_prune="fail",
            pre_execute=partial(use, session),
        )
with dag("no_work"):
    PythonOperator(task_id="sales_of_the_day", python_callable=lambda: None)
with dag("spark_submit"):
    SparkSubmitOperator(
        task_id="sales_of_the_day",
        conn_id="this_machine",
        application=os.environ["BENCHMARK_SCRIPT"],
        application_args=[SQL],
    )
