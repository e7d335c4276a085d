"""One mapped task for each state: the same join in many statements, each with its own pruning."""

from __future__ import annotations

from airflow.sdk import DAG, Param, task

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

SALES = """
SELECT s.s_state, sum(ss.ss_ext_sales_price) AS revenue
FROM store_sales ss
JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk
JOIN store s ON ss.ss_store_sk = s.s_store_sk
WHERE d.d_year = 2000 AND d.d_moy = 11 AND s.s_state = '{state}'
GROUP BY s.s_state
"""

with DAG(
    "sales_by_state",
    schedule=None,
    catchup=False,
    tags=["airflow-hive-opt", "example"],
    params={"states": Param(["TN", "SD"], type="array", items={"type": "string"})},
    doc_md=__doc__,
):

    @task
    def statements(params: dict) -> list[str]:
        """One statement for each state; two letters are safe to write into SQL."""
        states = params["states"]
        if odd := [state for state in states if not (state.isalpha() and len(state) == 2)]:
            raise ValueError(f"a state is two letters, not {odd[0]!r}")
        return [SALES.format(state=state) for state in states]

    # one at a time: the embedded metastore serves one application
    MapJoinPruneOperator.partial(task_id="of_a_state", max_active_tis_per_dag=1).expand(
        sql=statements()
    )
