"""Merges each day's changed orders into an Iceberg table; for backfills, in the order of the days.

    airflow backfill create --dag-id upsert_orders --from-date 2026-01-01 --to-date 2026-01-31

A changed order may be of any earlier day. The operator reads the days that have changed orders
first, so that the MERGE reads and writes these days only. The sensor waits until the day's changed
orders are there; PyIceberg asks the catalog, without Spark.

Needs the Variable `iceberg_conf`, Spark's settings as JSON: the jar or its coordinates, Iceberg's
extensions, and a catalog of any type but `hadoop`. The Connection `iceberg_default` is the same
catalog for the sensor.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param
from pendulum import datetime

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor

CONF = "{{ var.json.iceberg_conf }}"

with DAG(
    "upsert_orders",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a later change of an order must come later
    render_template_as_native_obj=True,  # the settings are a dictionary
    tags=["airflow-hive-opt", "example"],
    params={
        "day": Param("2026-01-01", type="string", format="date"),
        "catalog": Param("lake", type="string", description="the catalog's name in Spark"),
    },
    doc_md=__doc__,
):
    wait = RequiredPartitionsSensor(
        task_id="changes_are_there",
        sql="sql/changed_orders.sql",
        catalog_conn_id="iceberg_default",
        conf=CONF,
        poke_interval=300,
    )
    wait >> MapJoinPruneOperator(
        task_id="changed_orders", sql="sql/upsert_orders.sql", conf=CONF, on_no_prune="fail"
    )
