"""Writes one day's sales to that day's partition; for backfills, in any order and repeatedly.

    airflow backfill create --dag-id backfill_by_day --from-date 2000-11-01 --to-date 2000-11-14

Each run overwrites its own partition, so a second run gives the same rows. A run that is triggered
by hand has no logical date and takes the day from the trigger form.
"""

from __future__ import annotations

from airflow.sdk import DAG, Asset, Param
from pendulum import datetime

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "backfill_by_day",
    schedule="@daily",
    start_date=datetime(2000, 11, 1),
    end_date=datetime(2000, 11, 30),
    catchup=False,
    max_active_runs=4,
    tags=["airflow-hive-opt", "example"],
    params={"day": Param("2000-11-01", type="string", format="date")},
    doc_md=__doc__,
):
    MapJoinPruneOperator(
        task_id="sales_of_the_day",
        sql="sql/sales_of_the_day.sql",
        max_partitions=1,
        on_no_prune="fail",
        outlets=[Asset("sales_by_day")],
    )
