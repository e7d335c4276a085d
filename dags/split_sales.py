"""Two tasks: first the partition list, on this machine, then the join.

After the first task you can see what the join will read. A limit stops the join before it occupies
a cluster. Trigger the DAG with "prune_only" to skip the join. A `conn_id` in `map_join_args` sends
the join to a cluster.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup

with DAG(
    "split_sales",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={
        "year": Param(2000, type="integer", minimum=1998, maximum=2002),
        "month": Param(11, type="integer", minimum=1, maximum=12),
        "prune_only": Param(False, type="boolean", title="Only look", description="Join nothing."),
    },
    doc_md=__doc__,
):
    MapJoinPruneTaskGroup(
        "sales",
        sql="sql/sales_by_category.sql",
        prune_only="{{ params.prune_only }}",
        max_partitions=31,
        on_empty="skip",
    )
