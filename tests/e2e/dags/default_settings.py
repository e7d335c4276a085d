"""Default settings: a closed gate, a scan that is not pruned, the split form with a sensor."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup

SALES = """SELECT count(*) AS sales FROM store_sales ss
JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk WHERE d.d_moy = 11"""
ALL_SALES = SALES.replace("JOIN", "LEFT JOIN").replace("WHERE", "AND")

with DAG("default_settings", schedule=None):
    MapJoinPruneOperator(task_id="closed_gate", sql=SALES, max_partitions=1)
    MapJoinPruneOperator(
        task_id="a_task_that_reads_everything_and_has_a_name_that_no_phone_shows_in_one_line",
        sql=ALL_SALES,
    )
    split = MapJoinPruneTaskGroup("split", sql=SALES)
    wait = RequiredPartitionsSensor(task_id="wait", sql=SALES, poke_interval=1)
    split.local_task >> wait >> split.map_join
