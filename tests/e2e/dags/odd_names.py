"""Keys and partition names with markup, in two mapped tasks; and a scan that reads everything."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

SALES = """SELECT s.n, t.n FROM odd.sales s
JOIN odd.keys k ON s.name = k.name AND k.n > {}
LEFT JOIN odd.sales t ON t.n = s.n"""

with DAG("odd_names", schedule=None):
    MapJoinPruneOperator.partial(task_id="join").expand(sql=[SALES.format(0), SALES.format(5)])
