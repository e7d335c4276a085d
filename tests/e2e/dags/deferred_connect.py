"""A join that waits in the triggerer for its statement on a Spark Connect server."""

from __future__ import annotations

import os
from datetime import timedelta
from signal import SIGKILL

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

SQL = """INSERT INTO {{ params.table }}
SELECT f.id, java_method('java.lang.Thread', 'sleep',
                         {{ params.slow if ti.try_number == 1 else params.later }}L) AS slept
FROM e2e.fact f JOIN e2e.keys k ON f.p = k.p AND k.id < 3"""


def die_as_it_resumes(context):
    """Kills the process of the first attempt that goes on after its wait."""
    marked = join.attempt_path(context).with_name("resumes")
    if not context["params"]["dies"] or context["ti"].try_number > 1:
        return
    if marked.exists():
        os.kill(os.getpid(), SIGKILL)
    marked.parent.mkdir(parents=True, exist_ok=True)
    marked.touch()


PARAMS = {
    "table": Param(type="string"),
    "slow": Param(type="integer"),  # milliseconds for each row of the first attempt
    "later": Param(1, type="integer"),  # of the others, whose statement is another one then
    "dies": Param(False, type="boolean"),
}
with DAG("deferred_connect", schedule=None, params=PARAMS):
    join = MapJoinPruneOperator(
        task_id="join",
        sql=SQL,
        conn_id="connect_e2e",
        local_task="spark",
        deferrable=True,
        retries=1,
        retry_delay=timedelta(seconds=1),
        pre_execute=die_as_it_resumes,
    )
