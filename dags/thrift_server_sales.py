"""The join on Spark's Thrift server: Airflow's SQL operator runs the restricted statement.

Needs Airflow's Hive provider, a connection `spark_thrift_server` of the type HiveServer2, and a
connection `metastore_default` to the server's metastore. The guard before the statement makes the
task fail if the server's session or the small tables differ.
"""

from __future__ import annotations

from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.local_task import LocalTaskOperator

with DAG(
    "thrift_server_sales",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={
        "year": Param(2000, type="integer", minimum=1998, maximum=2002),
        "month": Param(11, type="integer", minimum=1, maximum=12),
    },
    doc_md=__doc__,
):
    look = LocalTaskOperator(
        task_id="look",
        sql="sql/sales_by_category.sql",
        metastore_conn_id="metastore_default",
        for_other_runner=True,
        max_partitions=31,
    )
    SQLExecuteQueryOperator(
        task_id="join",
        conn_id="spark_thrift_server",
        sql=look.output["restricted_sql_guarded"],
    )
