"""Merges changed orders into an Iceberg table by their numbers; no one says of which day they are.

The table is partitioned by day, and the MERGE knows the number of an order only. A key index of the
numbers says which files have the changed orders, so that the MERGE reads and writes their days. The
first task brings the index up to date: it reads the numbers in the files that the last run wrote.

Needs `[hive_opt] index_path`, a folder or a URI of storage that the workers and Spark reach, and
what `upsert_orders` needs: the Variable `iceberg_conf` and the Connection `iceberg_default`.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param
from pendulum import datetime

from airflow_hive_opt.operators.key_index import KeyIndexOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "upsert_orders_by_number",
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
    index = KeyIndexOperator(
        task_id="numbers_of_orders",
        table="{{ params.catalog }}.shop.orders",
        column="id",
        catalog_conn_id="iceberg_default",
    )
    index >> MapJoinPruneOperator(
        task_id="changed_orders",
        trigger_rule="all_done",  # the index is only for speed
        sql="sql/upsert_orders_by_number.sql",
        conf="{{ var.json.iceberg_conf }}",
    )
