"""A join on the cluster whose first attempt takes minutes, so that a test can kill it."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

SLOW = """INSERT OVERWRITE TABLE slow_result
SELECT d.d_moy, count(*) AS n FROM store_sales ss
JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk AND d.d_moy = 2
CROSS JOIN (SELECT id FROM range(0, {{ params.rows * (1 if ti.try_number > 1 else 500) }}, 1, 4)) r
WHERE hash(ss.ss_item_sk, r.id) % 1000 = 7 GROUP BY d.d_moy"""

with DAG("slow_sales", schedule=None, params={"rows": Param(type="integer")}):
    MapJoinPruneOperator(
        task_id="join",
        sql=SLOW,
        conn_id="spark_cluster",
        conf={"spark.log.level": "INFO"},  # tells where its page is
        executor_memory="512m",
        retries=1,
        retry_delay=timedelta(seconds=1),
    )
