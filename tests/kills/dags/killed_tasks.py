"""The tasks that the suite kills: on a cluster, and over Spark Connect, deferred or not."""

from __future__ import annotations

import sys
from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

# The statement is one task of Spark: what it writes is committed at one moment.
ONE_TASK = {"spark.sql.files.minPartitionNum": "1"}
RETRIES = {"retries": 3, "retry_delay": timedelta(seconds=1)}
PARAMS = {"sql": Param(type="string")}

with DAG("killed_cluster", schedule=None, params=PARAMS):
    MapJoinPruneOperator(
        task_id="write",
        sql="{{ params.sql }}",
        conn_id="spark_drivers",
        metastore_conn_id="metastore_default",
        conf={**ONE_TASK, "spark.pyspark.python": sys.executable},
        driver_memory="512m",
        executor_memory="512m",
        deferrable=True,
        **RETRIES,
    )

for name, deferrable in (("killed_connect", False), ("killed_deferred", True)):
    with DAG(name, schedule=None, params=PARAMS):
        MapJoinPruneOperator(
            task_id="write",
            sql="{{ params.sql }}",
            conn_id="spark_connect_server",
            conf=ONE_TASK,
            deferrable=deferrable,
            **RETRIES,
        )
