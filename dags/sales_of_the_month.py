"""Three reports over one month's sales. They share their keys: the days are read once.

The first local task reads the keys of date_dim and stores them under the group's name. The others
take them, if date_dim has not changed. XCom says so in key_sets. A later run for the same month
takes them too.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup

REPORT = """
SELECT {columns}, count(*) AS sales, sum(ss.ss_ext_sales_price) AS revenue
FROM store_sales ss
JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk
{join}
WHERE d.d_year = {{{{ params.year }}}} AND d.d_moy = {{{{ params.month }}}}
GROUP BY {columns}
"""
OF_ITEM = "JOIN item i ON ss.ss_item_sk = i.i_item_sk"
OF_STORE = "JOIN store s ON ss.ss_store_sk = s.s_store_sk"

with DAG(
    "sales_of_the_month",
    schedule=None,
    catchup=False,
    max_active_tasks=1,  # the embedded metastore serves one application
    tags=["airflow-hive-opt", "example"],
    params={
        "year": Param(2000, type="integer", minimum=1998, maximum=2002),
        "month": Param(11, type="integer", minimum=1, maximum=12),
    },
    doc_md=__doc__,
):
    MapJoinPruneTaskGroup(
        "month",
        sql={
            "by_category": REPORT.format(columns="i.i_category", join=OF_ITEM),
            "by_state": REPORT.format(columns="s.s_state", join=OF_STORE),
            "by_day": REPORT.format(columns="d.d_date", join=""),
        },
        max_partitions=31,
    )
