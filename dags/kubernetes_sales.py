"""The join on Kubernetes: `spark-submit` creates the driver's pod, and the task follows it.

Needs `pip install airflow-hive-opt[spark-submit,kubernetes]`, with a Spark provider that has
`track_driver_via_k8s_api`, and a connection `spark_kubernetes` of the type Spark, with a master
`k8s://...`, the deploy mode `cluster` and a namespace. The driver must reach the storage of
`[hive_opt] descriptor_path`. This has never run on a cluster.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "kubernetes_sales",
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
        conn_id="spark_kubernetes",
        conf={
            "spark.kubernetes.container.image": "registry.example.com/spark:4.2.0",
            "spark.kubernetes.file.upload.path": "s3a://example/uploads",
            "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
        },
        track_driver_via_k8s_api=True,
        max_partitions=31,
    )
