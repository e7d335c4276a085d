"""Rows of Airflow's database as runs of the operators leave them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any
from uuid import uuid4

from airflow_hive_opt.documents.figures import FIGURES_KEY, Figures

NOW = datetime.now(timezone.utc).replace(microsecond=0)
_AT_ONCE = 5_000


@dataclass(frozen=True)
class Ran:
    """A task instance, by default with figures; its run's date is ``hours`` ago.

    It started at that date, or ``started`` hours ago.
    """

    dag_id: str
    task_id: str
    hours: float
    figures: Figures | None
    map_index: int = -1
    kind: str = "scheduled"
    try_number: int = 1
    xcoms: Mapping[str, Any] = field(default_factory=dict)
    rendered: Mapping[str, Any] = field(default_factory=dict)
    started: float | None = None
    state: str = "success"
    operator: str = "MapJoinPruneOperator"

    @property
    def run_after(self) -> datetime:
        return NOW - timedelta(hours=self.hours)

    @property
    def values(self) -> Mapping[str, Any]:
        """The XComs."""
        return {**({FIGURES_KEY: self.figures.to_json()} if self.figures else {}), **self.xcoms}

    @property
    def start_date(self) -> datetime:
        return self.run_after if self.started is None else NOW - timedelta(hours=self.started)

    @property
    def run_id(self) -> str:
        return f"{self.kind}__{self.run_after.isoformat()}"


def figures(kept: int, total: int, reason: str = "PRUNED", **more: Any) -> Figures:
    scans = (("f", reason),)
    seconds = {"map join": 1.5, "local task": 0.25}  # a database may change the order
    given = {"scans": scans, "seconds": seconds, **more}
    return Figures(reason, kept, total, **given)


def add(session, ran: Sequence[Ran]) -> None:
    """Inserts DAG runs, task instances, XComs and rendered fields, many at once."""
    from airflow.models.dagrun import DagRun
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from sqlalchemy import func, insert, select

    first = (session.scalar(select(func.max(DagRun.id))) or 0) + 1
    wanted = dict.fromkeys((each.dag_id, each.run_id, each.run_after) for each in ran)
    ids = {key[:2]: first + at for at, key in enumerate(wanted)}
    runs = (
        {
            "id": ids[dag_id, run_id],
            "dag_id": dag_id,
            "run_id": run_id,
            "run_type": "scheduled",
            "logical_date": after if run_id.startswith("scheduled") else None,
            "run_after": after,
            "state": "success",
            "clear_number": 0,
        }
        for dag_id, run_id, after in wanted
    )
    _insert(session, insert(DagRun.__table__), runs)
    places = [(each, _place(each)) for each in ran]
    instances = (
        {
            "id": uuid4(),
            **place,
            "pool": "default_pool",
            "pool_slots": 1,
            "try_number": each.try_number,
            "state": each.state,
            "operator": each.operator,
            "start_date": each.start_date,
            "duration": 2.5,
        }
        for each, place in places
    )
    _insert(session, insert(TaskInstance.__table__), instances)
    xcoms = (
        {
            "dag_run_id": ids[each.dag_id, each.run_id],
            **place,
            "key": key,
            "value": value,
            "timestamp": each.start_date,
        }
        for each, place in places
        for key, value in each.values.items()
    )
    _insert(session, insert(XComModel.__table__), xcoms)
    rendered = (
        {**place, "rendered_fields": dict(each.rendered)} for each, place in places if each.rendered
    )
    _insert(session, insert(RenderedTaskInstanceFields.__table__), rendered)
    session.commit()


def _place(ran: Ran) -> dict[str, Any]:
    names = ("dag_id", "task_id", "run_id", "map_index")
    return {name: getattr(ran, name) for name in names}


def _insert(session, statement, rows: Iterable[dict[str, Any]]) -> None:
    waiting: Iterator[dict[str, Any]] = iter(rows)
    while chosen := list(islice(waiting, _AT_ONCE)):
        session.execute(statement, chosen)


def add_dags(session, dag_ids: Iterable[str], bundle: str = "tests") -> None:
    """DAGs that the API server knows."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel

    session.merge(DagBundleModel(name=bundle))
    session.flush()
    for dag_id in dag_ids:
        session.merge(
            DagModel(
                dag_id=dag_id,
                bundle_name=bundle,
                max_active_tasks=16,
                max_consecutive_failed_dag_runs=0,
                has_task_concurrency_limits=False,
            )
        )
    session.commit()
