"""A join that waits in the triggerer while its driver runs on the cluster."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from signal import SIGKILL

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

SQL = """INSERT INTO {{ params.table }}
SELECT d.d_moy, count(*) AS n FROM store_sales ss
JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk AND d.d_moy = 2
CROSS JOIN (
  SELECT id FROM range(0, {{ params.rows * (params.first if ti.try_number == 1 else 1) }}, 1, 4)
) r WHERE hash(ss.ss_item_sk, r.id) % 1000 = 7 GROUP BY d.d_moy"""


def die_as_it_resumes(context):
    """Kills the process of the first attempt, once the driver has ended."""
    instance = context["ti"]
    outcome = join.attempt_path(context).with_name("1.outcome.json")
    if context["params"]["dies"] and instance.try_number == 1 and outcome.exists():
        os.kill(os.getpid(), SIGKILL)


PARAMS = {
    "table": Param(type="string"),
    "rows": Param(type="integer"),
    "first": Param(1, type="integer"),  # the first attempt has so many times as many rows
    "dies": Param(False, type="boolean"),
}
with DAG("deferred_sales", schedule=None, params=PARAMS):
    join = MapJoinPruneOperator(
        task_id="join",
        sql=SQL,
        conn_id="spark_drivers",
        metastore_conn_id="metastore_default",
        conf={"spark.pyspark.python": sys.executable},
        driver_memory="512m",
        executor_memory="512m",
        deferrable=True,
        retries=1,
        retry_delay=timedelta(seconds=1),
        pre_execute=die_as_it_resumes,
    )
