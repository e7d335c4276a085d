"""Merges each day's changed orders into a Delta table; for backfills, in the order of the days.

    airflow backfill create --dag-id upsert_orders_delta --from-date 2026-01-01 --to-date 2026-01-31

A changed order may be of any earlier day. The operator reads the days that have changed orders
first, so that the MERGE reads and writes these days only. The sensor waits until the day's changed
orders are there; each poke reads the new commits of the table's log, without Spark.

Needs the Variable `delta_jars`, the paths of Delta's jars for this version of Spark, with commas
between them.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param
from pendulum import datetime

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor

CONF = {
    "spark.jars": "{{ var.value.delta_jars }}",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

with DAG(
    "upsert_orders_delta",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a later change of an order must come later
    tags=["airflow-hive-opt", "example"],
    params={"day": Param("2026-01-01", type="string", format="date")},
    doc_md=__doc__,
):
    wait = RequiredPartitionsSensor(
        task_id="changes_are_there",
        sql="sql/changed_orders_delta.sql",
        conf=CONF,
        poke_interval=300,
    )
    wait >> MapJoinPruneOperator(
        task_id="changed_orders", sql="sql/upsert_orders_delta.sql", conf=CONF, on_no_prune="fail"
    )
