"""The tasks that the suite kills: on a cluster, and over Spark Connect, deferred or not."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

# The statement is one task of Spark: what it writes is committed at one moment.
ONE_TASK = {"spark.sql.files.minPartitionNum": "1"}
JAVA_OPTIONS = os.environ.get("JAVA_OPTIONS", "")
ON_CLUSTER = {
    **ONE_TASK,
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.pyspark.python": sys.executable,
}
RETRIES = {"retries": 3, "retry_delay": timedelta(seconds=1)}
PARAMS = {"sql": Param(type="string")}

# Each of the tasks that run at once has a pool, a queue with a triggerer, a cluster and a Spark
# Connect server of its own.
for number in range(int(os.environ.get("AT_ONCE") or 1)):
    with DAG(f"killed_cluster_{number}", schedule=None, params=PARAMS):
        MapJoinPruneOperator(
            task_id="write",
            sql="{{ params.sql }}",
            conn_id=f"spark_drivers_{number}",
            metastore_conn_id="metastore_default",
            pool=f"task{number}",
            queue=f"task{number}",
            conf=ON_CLUSTER,
            driver_memory="512m",
            executor_memory="512m",
            deferrable=True,
            **RETRIES,
        )
    for name, deferrable in (("killed_connect", False), ("killed_deferred", True)):
        with DAG(f"{name}_{number}", schedule=None, params=PARAMS):
            MapJoinPruneOperator(
                task_id="write",
                sql="{{ params.sql }}",
                conn_id=f"spark_connect_server_{number}",
                pool=f"task{number}",
                queue=f"task{number}",
                conf=ONE_TASK,
                deferrable=deferrable,
                **RETRIES,
            )
