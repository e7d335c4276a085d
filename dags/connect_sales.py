"""The join on a Spark Connect server: Airflow needs no Java and no spark-submit.

Needs a connection `spark_connect_default` of the type Spark Connect, and
`pip install airflow-hive-opt[spark-submit,connect]`. The tables are the server's.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "connect_sales",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={
        "year": Param(2000, type="integer", minimum=1998, maximum=2002),
        "month": Param(11, type="integer", minimum=1, maximum=12),
    },
    doc_md=__doc__,
):
    MapJoinPruneOperator(
        task_id="sales_by_category",
        sql="sql/sales_by_category.sql",
        conn_id="spark_connect_default",
        max_partitions=31,
    )
