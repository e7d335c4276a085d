"""Completes each day's changed orders in a Hudi table; for backfills, in the order of the days.

    airflow backfill create --dag-id upsert_orders_hudi --from-date 2026-01-01 --to-date 2026-01-31

A changed order names only what has changed, and may be of any earlier day. The statement takes the
rest from the order as it is. The operator reads the days that have changed orders first, so that
only these days of the table are read; Hudi then writes the rows by their key.

Needs the Variable `hudi_jar`, the path of Hudi's bundle for this version of Spark.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param
from pendulum import datetime

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "upsert_orders_hudi",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a later change of an order must come later
    tags=["airflow-hive-opt", "example"],
    params={"day": Param("2026-01-01", type="string", format="date")},
    doc_md=__doc__,
):
    MapJoinPruneOperator(
        task_id="changed_orders",
        sql="sql/upsert_orders_hudi.sql",
        conf={
            "spark.jars": "{{ var.value.hudi_jar }}",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        },
        on_no_prune="fail",
    )
