"""One task: a TPC-DS star join into a result table, which reads one month of five years.

The sales table is partitioned by day. Only the date table says which days belong to the month, so
the statement names no partition. The operator finds the partitions before the join starts.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "tpcds_star_join",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={
        "year": Param(2000, type="integer", minimum=1998, maximum=2002),
        "month": Param(11, type="integer", minimum=1, maximum=12),
    },
    doc_md=__doc__,
):
    MapJoinPruneOperator(
        task_id="sales_by_category",
        sql="sql/sales_by_category.sql",
        max_partitions=31,
        on_no_prune="fail",
    )
