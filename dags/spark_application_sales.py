"""The join as a `SparkApplication` of the Kubeflow Spark operator.

Needs `pip install airflow-hive-opt[kubernetes]`, a connection `kubernetes_default`, and an image
with this package's driver script. The driver must reach the storage of `[hive_opt]
descriptor_path`. This has never run on a cluster.
"""

from __future__ import annotations

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
from airflow.sdk import DAG, Param, get_current_context, task

from airflow_hive_opt.operators.spark_application import (
    application_spec,
    read_outcome,
    write_job,
)

SQL = """
SELECT i.i_category, count(*) AS sales
FROM store_sales s JOIN date_dim d ON s.ss_sold_date_sk = d.d_date_sk
  JOIN item i ON s.ss_item_sk = i.i_item_sk
WHERE d.d_year = :year AND d.d_moy = :month
GROUP BY i.i_category
"""
POD = {"cores": 1, "memory": "1g", "serviceAccount": "spark"}


@task
def job() -> dict[str, str]:
    """Writes the job for the driver."""
    context = get_current_context()
    given = {name: context["params"][name] for name in ("year", "month")}
    return write_job(context, SQL, parameters=given)


@task
def outcome(written: dict[str, str]) -> dict[str, object]:
    """Reads how the job ended."""
    return read_outcome(get_current_context(), written)


with DAG(
    "spark_application_sales",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={
        "year": Param(2000, type="integer", minimum=1998, maximum=2002),
        "month": Param(11, type="integer", minimum=1, maximum=12),
    },
    doc_md=__doc__,
):
    written = job()
    join = SparkKubernetesOperator(
        task_id="join",
        namespace="etl",
        template_spec={
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "spec": {
                **application_spec(
                    "{{ ti.xcom_pull(task_ids='job')['uri'] }}",
                    image="registry.example.com/spark-hive-opt:4.2.0",
                    spark_version="4.2.0",
                ),
                "sparkConf": {"spark.sql.catalogImplementation": "hive"},
                "driver": POD,
                "executor": {**POD, "instances": 2},
            },
        },
    )
    written >> join >> outcome(written)
