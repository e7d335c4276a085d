"""Airflow's own SQL operators on pruned statements: wait for sales, write them, check the rows.

Needs a connection `hive_opt_default` of the type Hive Opt. An empty one is the embedded Spark; its
extra may name a Spark Connect server. Each task starts an embedded Spark, unless the tasks share
one: `[hive_opt] session = shared`.
"""

from __future__ import annotations

from airflow.providers.common.sql.operators.sql import SQLCheckOperator, SQLExecuteQueryOperator
from airflow.providers.common.sql.sensors.sql import SqlSensor
from airflow.sdk import DAG, Param

CONNECTION = "hive_opt_default"
SALES = """FROM store_sales ss JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk
           JOIN item i ON ss.ss_item_sk = i.i_item_sk
           JOIN store s ON ss.ss_store_sk = s.s_store_sk
           WHERE d.d_year = {{ params.year }} AND d.d_moy = {{ params.month }}"""

with DAG(
    "checked_sales",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={
        "year": Param(2000, type="integer", minimum=1998, maximum=2002),
        "month": Param(11, type="integer", minimum=1, maximum=12),
    },
    doc_md=__doc__,
):
    wait = SqlSensor(
        task_id="wait_for_sales",
        conn_id=CONNECTION,
        sql=f"SELECT count(*) {SALES}",
        mode="reschedule",
        poke_interval=600,
    )
    write = SQLExecuteQueryOperator(
        task_id="sales_by_category",
        conn_id=CONNECTION,
        sql="sql/sales_by_category.sql",
        hook_params={"max_partitions": 31},
    )
    check = SQLCheckOperator(
        task_id="no_sale_is_missing",
        conn_id=CONNECTION,
        sql=f"SELECT count(*) = (SELECT sum(sales) FROM sales_by_category) {SALES}",
    )
    wait >> write >> check
