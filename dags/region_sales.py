"""One region's sales in one month; the user chooses both in the trigger form.

The region is free text, so it is a parameter of the statement. Spark binds `:region`, and a quote
in its value can't end the statement. The form allows only a number for the month, so a template may
write it into the statement.
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
