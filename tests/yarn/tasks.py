"""Operators as tasks run them on a YARN cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ITEMS = "SELECT s.item, s.ds FROM shop.sales s JOIN shop.days d ON s.ds = d.ds WHERE d.week = 2"
# Runs for longer than any test; hash is not understood by the planner as a constant.
FOREVER = (
    "SELECT CAST(count(*) AS INT) AS item, 0 AS ds FROM shop.sales s JOIN shop.days d "
    "ON s.ds = d.ds AND d.week = 2 CROSS JOIN (SELECT id FROM range(0, {rows}, 1, 8)) r "
    "WHERE pmod(hash(s.item, r.id), 7) >= 0"
)


class Store(dict):
    """What Airflow keeps of a task between its tries."""

    def set(self, key: str, value: str, **_: Any) -> None:
        """As Airflow's store."""
        self[key] = value


def context(store: Store | None = None, try_number: int = 1) -> dict[str, Any]:
    """The context of one try."""
    instance = SimpleNamespace(
        dag_id="d",
        run_id="r",
        task_id="t",
        map_index=-1,
        try_number=try_number,
        max_tries=1,
        stats_tags={},
        xcom_push=lambda key, value: None,
    )
    return {
        "ti": instance,
        "params": {},
        "dag_run": SimpleNamespace(clear_number=0),
        "task_state_store": Store() if store is None else store,
        "outlet_events": {},
    }


def made(operator: type, sql: str, folder: Path, conf: dict[str, str], **options: Any) -> Any:
    """The operator, whose driver has this Python."""
    own = {
        **conf,
        "spark.pyspark.python": sys.executable,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
        "spark.yarn.submit.waitAppCompletion.interval": "1s",
        "spark.yarn.report.interval": "200ms",
    }
    return operator(
        task_id="t", conn_id="cluster", sql=sql, conf=own, descriptor_path=str(folder), **options
    )


def wait_until(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Waits until something has happened."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)
