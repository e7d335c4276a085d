"""Merges each day's changed orders into an Iceberg table; for backfills, in the order of the days.

    airflow backfill create --dag-id upsert_orders --from-date 2026-01-01 --to-date 2026-01-31

A changed order may be of any earlier day. The operator reads the days that have changed orders
first, so that the MERGE reads and writes these days only.

Needs two Variables: `iceberg_jars`, the path of Iceberg's runtime for this version of Spark, and
`iceberg_warehouse`, the folder of the catalog `lake`.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param
from pendulum import datetime

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "upsert_orders",
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
        sql="sql/upsert_orders.sql",
        conf={
            "spark.jars": "{{ var.value.iceberg_jars }}",
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": "{{ var.value.iceberg_warehouse }}",
        },
        on_no_prune="fail",
    )
