"""The tasks that the suite kills: on a cluster, and over Spark Connect, deferred or not."""

from __future__ import annotations

import sys
from datetime import timedelta
from itertools import product

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

# Tasks that run at once, as many as matrix.AT_ONCE, have users of their own, by which the server's
# jobs are told apart, and pools of their own.
for (name, deferrable), place in product(
    (("killed_connect", False), ("killed_deferred", True)), range(4)
):
    with DAG(f"{name}_{place}", schedule=None, params=PARAMS):
        MapJoinPruneOperator(
            task_id="write",
            sql="{{ params.sql }}",
            conn_id=f"spark_connect_server_{place}",
            pool=f"user{place}",
            conf=ONE_TASK,
            deferrable=deferrable,
            **RETRIES,
        )
