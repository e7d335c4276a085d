"""A task in the Spark that the tasks of this machine share."""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import DAG

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator


def share(context: object) -> None:
    os.environ["AIRFLOW__HIVE_OPT__SESSION"] = "shared"
    os.environ["AIRFLOW_HIVE_OPT_SESSIONS"] = str(Path(__file__).parents[1] / "sessions")


with DAG("shared_session", schedule=None):
    MapJoinPruneOperator(
        task_id="sales",
        sql="SELECT count(*) FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk "
        "WHERE d_date = DATE'2000-11-01'",
        on_no_prune="fail",
        pre_execute=share,
    )
