"""The join as a `SparkApplication` without this package: a script runs the restricted statement.

Needs Airflow's Kubernetes provider, the Kubeflow Spark operator, an image with
`dags/spark/run_statements.py`, and a `[hive_opt] descriptor_path` that the driver can read.
`spark_application_sales` has this package in the image instead. This has never run on a cluster.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.local_task import LocalTaskOperator

try:
    from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
except ImportError:  # without the provider there is no such DAG
    SparkKubernetesOperator = None

if SparkKubernetesOperator is not None:
    with DAG(
        "spark_kubernetes_sales",
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
        SparkKubernetesOperator(
            task_id="join",
            namespace="etl",
            template_spec={
                "apiVersion": "sparkoperator.k8s.io/v1beta2",
                "kind": "SparkApplication",
                "spec": {
                    "type": "Python",
                    "mode": "cluster",
                    "image": "registry.example.com/spark:4.2.0",
                    "sparkVersion": "4.2.0",
                    "mainApplicationFile": "local:///opt/scripts/run_statements.py",
                    "arguments": [look.output["restricted_sql_guarded_uri"]],
                    "sparkConf": {
                        "spark.hadoop.hive.metastore.uris": "thrift://metastore.example.com:9083"
                    },
                    "driver": {"cores": 1, "memory": "1g", "serviceAccount": "spark"},
                    "executor": {"cores": 1, "memory": "1g", "instances": 2},
                },
            },
        )
