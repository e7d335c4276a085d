"""A reader follows a run through few modules; ``docs/how-it-works/architecture.md`` lists them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import airflow_hive_opt
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from tests.versions.installed import needs_airflow, needs_spark

PACKAGE = Path(airflow_hive_opt.__file__).parent
PAGE = PACKAGE.parent / "docs/how-it-works/architecture.md"
# Between the operator and the rows; the planners are trees of rules, with a tuple that orders them.
OF_THE_RUN = ("operators", "provider", "restriction", "local_task", "spark")
HOLD_DATA = ("statement", "metastores", "documents", "spark/session")
MOST = 25


def directing(calls: dict[str, dict[str, None]]) -> list[str]:
    """The modules that call at least two others, in the order in which the run enters them."""
    return [
        caller
        for caller, called in calls.items()
        if caller.startswith(OF_THE_RUN)
        and not caller.startswith(HOLD_DATA)
        and sum(not each.startswith(HOLD_DATA) for each in called) >= 2
    ]


def calls_of(run) -> dict[str, dict[str, None]]:
    """For each module of the package, in the order of entry, the modules that it calls."""
    calls: dict[str, dict[str, None]] = {}

    def module(frame) -> str | None:
        path = Path(frame.f_code.co_filename)
        return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else None

    def watch(frame, event, _):
        if event != "call" or (called := module(frame)) is None:
            return
        calls.setdefault(called, {})
        caller = frame.f_back
        while caller is not None and module(caller) is None:
            if caller.f_globals.get("__name__", "").startswith("structlog"):
                return  # a processor of log lines, which an earlier failure of a task has added
            caller = caller.f_back
        if caller is not None and module(caller) != called:
            calls[module(caller)][called] = None

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


@needs_airflow("3.0")  # the page lists the modules for current versions
@needs_spark("4.0")
def test_a_run_calls_the_few_modules_that_the_architecture_page_lists(spark, tmp_path):
    instance = SimpleNamespace(dag_id="dag", run_id="run", task_id="task", map_index=-1)
    instance.try_number, instance.xcom_push = 1, lambda key, value: None
    context = {"ti": instance}
    spark.sql("CREATE DATABASE modules")
    try:
        spark.range(5).selectExpr("id", "id p").write.partitionBy("p").saveAsTable("modules.f")
        spark.range(2).selectExpr("id p").write.saveAsTable("modules.k")
        operator = MapJoinPruneOperator(
            task_id="task",
            sql="SELECT f.id FROM modules.f f JOIN modules.k k ON f.p = k.p",
            descriptor_path=str(tmp_path),
        )
        operator.execute(context)  # Spark's own start is no part of the run
        found = directing(calls_of(lambda: operator.execute(context)))
    finally:
        spark.sql("DROP DATABASE modules CASCADE")
    listed = re.findall(r"^1\. `([a-z_/]+\.py)`", PAGE.read_text(), re.MULTILINE)
    assert found == listed
    assert len(found) <= MOST
