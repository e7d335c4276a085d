"""The join as a step of an EMR cluster: `spark-sql` runs the file with the restricted statement.

Needs Airflow's Amazon provider, a connection `aws_default`, the cluster's ID as the Variable
`emr_cluster_id`, and a `[hive_opt] descriptor_path` on S3. The metastore is AWS Glue. This has
never run on EMR.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.local_task import LocalTaskOperator

try:
    from airflow.providers.amazon.aws.operators.emr import EmrAddStepsOperator
except ImportError:  # without the provider there is no such DAG
    EmrAddStepsOperator = None

if EmrAddStepsOperator is not None:
    with DAG(
        "emr_sales",
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
            metastore_conn_id="aws_default",
            for_other_runner=True,
            max_partitions=31,
        )
        EmrAddStepsOperator(
            task_id="join",
            job_flow_id="{{ var.value.emr_cluster_id }}",
            steps=[
                {
                    "Name": "sales by category",
                    "ActionOnFailure": "CONTINUE",
                    "HadoopJarStep": {
                        "Jar": "command-runner.jar",
                        "Args": ["spark-sql", "-f", look.output["restricted_sql_guarded_uri"]],
                    },
                }
            ],
            wait_for_completion=True,
        )
