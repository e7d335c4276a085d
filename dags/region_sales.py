"""One region's sales of one month, both asked for in the trigger form.

The region is text that people choose, so it travels as a parameter: Spark binds `:region`, and no
quote in it can end the statement. The month is a number by the form's own rule, so it may be
written into the statement.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG(
    "region_sales",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={
        "region": Param("TN", type="string", title="Region", description="The stores' state."),
        "year": Param(2000, type="integer", minimum=1998, maximum=2002, title="Year"),
        "month": Param(11, type="integer", minimum=1, maximum=12, title="Month"),
    },
    doc_md=__doc__,
):
    MapJoinPruneOperator(
        task_id="sales_of_the_region",
        sql="sql/sales_of_the_region.sql",
        parameters={"region": "{{ params.region }}"},
        max_partitions=31,
    )
