"""The join by Livy, as a batch: a small script runs the file with the restricted statement.

Needs Airflow's Livy provider, a connection `livy_default`, `dags/spark/run_statements.py` in
storage, and a `[hive_opt] descriptor_path` that Livy's Spark can read. That Spark must have the
metastore of the connection `metastore_default`. This has never run on Livy.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.local_task import LocalTaskOperator

try:
    from airflow.providers.apache.livy.operators.livy import LivyOperator
except ImportError:  # without the provider there is no such DAG
    LivyOperator = None

if LivyOperator is not None:
    with DAG(
        "livy_sales",
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
        LivyOperator(
            task_id="join",
            file="s3a://example/scripts/run_statements.py",
            args=[look.output["restricted_sql_guarded_uri"]],
            polling_interval=30,
        )
