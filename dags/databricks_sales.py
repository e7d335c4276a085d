"""The join on a Databricks SQL warehouse.

Needs Airflow's Databricks provider, a connection `databricks_default`, and a connection
`metastore_default` to the metastore of the warehouse. There the catalog of a Hive Metastore has
another name, so the statement runs without its guard. This has never run on Databricks.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.local_task import LocalTaskOperator

try:
    from airflow.providers.databricks.operators.databricks_sql import DatabricksSqlOperator
except ImportError:  # without the provider there is no such DAG
    DatabricksSqlOperator = None

if DatabricksSqlOperator is not None:
    with DAG(
        "databricks_sales",
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
        DatabricksSqlOperator(
            task_id="join",
            sql_endpoint_name="sales",
            sql=look.output["restricted_sql"],
        )
