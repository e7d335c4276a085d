"""The join on a cluster: the Spark provider submits it and ships this package with it.

Needs a connection `spark_cluster` of the type Spark (standalone, YARN or Kubernetes). It also needs
a `[hive_opt] descriptor_path` that this machine and the cluster's driver can both access. The
operator accepts every argument of `SparkSubmitOperator`.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "cluster_sales",
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
        conn_id="spark_cluster",
        executor_memory="512m",
        max_partitions=31,
    )
