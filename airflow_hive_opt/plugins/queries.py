"""Reads Airflow's database for the pages; the number of queries does not depend on the data."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import Text, and_, cast, or_, select, tuple_
from sqlalchemy.orm import Session
from sqlalchemy.sql import Select

from airflow_hive_opt.documents.figures import FIGURES_KEY, SUMMARY_KEY, figures_in
from airflow_hive_opt.links.pages import DESCRIPTOR_KEY
from airflow_hive_opt.pages.instance import RETURN_VALUE
from airflow_hive_opt.pages.task_run import BriefRun, InstanceKey, TaskRun

_AT_ONCE = 2_000
_OF_THE_INSTANCE = and_(
    TaskInstance.dag_id == XComModel.dag_id,
    TaskInstance.run_id == XComModel.run_id,
    TaskInstance.task_id == XComModel.task_id,
    TaskInstance.map_index == XComModel.map_index,
)


def _task_runs() -> Select[Any]:
    """Task instances with figures. Starts at the DAG runs, whose dates have an index."""
    return (
        select(
            XComModel.dag_id,
            XComModel.task_id,
            XComModel.run_id,
            XComModel.map_index,
            XComModel.value,
            DagRun.logical_date,
            DagRun.run_after,
            TaskInstance.try_number,
            TaskInstance.state,
            TaskInstance.start_date,
            TaskInstance.duration,
        )
        .select_from(DagRun)
        .join(
            XComModel,
            and_(XComModel.dag_run_id == DagRun.id, XComModel.key == FIGURES_KEY),
        )
        .join(TaskInstance, _OF_THE_INSTANCE)
    )


def runs_since(session: Session, since: datetime, dag_ids: Collection[str]) -> Iterator[BriefRun]:
    """The figures of task instances of these DAGs that started since a date, oldest first.

    A backfill's runs have old dates, so the dates of DAG runs say nothing here. An XCom is never
    older than the start of its task instance, so most are left out by their own date, before they
    are joined with task instances. There may be many thousands: this keeps no row.
    """
    found = (
        select(
            XComModel.dag_id,
            XComModel.task_id,
            XComModel.run_id,
            XComModel.map_index,
            cast(XComModel.value, Text),
        )
        .join(TaskInstance, _OF_THE_INSTANCE)
        .where(
            XComModel.key == FIGURES_KEY,
            XComModel.dag_id.in_(dag_ids),
            XComModel.timestamp >= since,
            TaskInstance.start_date >= since,
        )
        .order_by(TaskInstance.start_date, XComModel.run_id, XComModel.map_index)
        .execution_options(yield_per=_AT_ONCE)
    )
    for dag_id, task_id, run_id, map_index, value in session.execute(found):
        figures = figures_in(loaded(value))
        if figures is not None:
            yield BriefRun(InstanceKey(dag_id, task_id, run_id, map_index), figures)


def runs_with_keys(session: Session, keys: Collection[InstanceKey]) -> dict[InstanceKey, TaskRun]:
    """The task instances with these keys, as far as Airflow still has them."""
    if not keys:
        return {}
    place = tuple_(XComModel.dag_id, XComModel.task_id, XComModel.run_id, XComModel.map_index)
    found = _read(session, _task_runs().where(place.in_(list(map(tuple, keys)))))
    return {run.key: run for run in found}


def runs_of_task(
    session: Session, dag_id: str, task_id: str, last: tuple[datetime, str, int] | None, limit: int
) -> list[TaskRun]:
    """The runs of a task, newest first.

    Those after ``last``, if it is given: a ``run_after``, a run ID and a map index. Several runs
    may have the same date.
    """
    found = _task_runs().where(DagRun.dag_id == dag_id, XComModel.task_id == task_id)
    if last is not None:
        before, run_id, index = last
        same_run = and_(DagRun.run_id == run_id, XComModel.map_index < index)
        same_date = and_(DagRun.run_after == before, or_(DagRun.run_id < run_id, same_run))
        found = found.where(or_(DagRun.run_after < before, same_date))
    order = DagRun.run_after.desc(), DagRun.run_id.desc(), XComModel.map_index.desc()
    return list(_read(session, found.order_by(*order).limit(limit)))


def run_of(
    session: Session, dag_id: str, run_id: str, task_id: str, map_index: int
) -> TaskRun | None:
    """One task instance; ``None`` if it has no figures."""
    found = _task_runs().where(
        DagRun.dag_id == dag_id,
        DagRun.run_id == run_id,
        XComModel.task_id == task_id,
        XComModel.map_index == map_index,
    )
    return next(_read(session, found), None)


def operator_of(
    session: Session, dag_id: str, task_id: str, run_id: str | None = None, map_index: int = -1
) -> tuple[str, str | None] | None:
    """The operator and state of a task instance; without a run ID, of any one of the task.

    ``None`` if Airflow has no such task instance.
    """
    found = select(TaskInstance.operator, TaskInstance.state).where(
        TaskInstance.dag_id == dag_id, TaskInstance.task_id == task_id
    )
    if run_id is not None:
        found = found.where(TaskInstance.run_id == run_id, TaskInstance.map_index == map_index)
    row = session.execute(found.limit(1)).first()
    return None if row is None else (row[0] or "", row[1])


def xcoms_of(
    session: Session, dag_id: str, run_id: str, task_id: str, map_index: int
) -> dict[str, Any]:
    """The task instance's summary and the URI of its descriptor, by XCom key."""
    found = select(XComModel.key, XComModel.value).where(
        XComModel.dag_id == dag_id,
        XComModel.run_id == run_id,
        XComModel.task_id == task_id,
        XComModel.map_index == map_index,
        XComModel.key.in_((RETURN_VALUE, SUMMARY_KEY, DESCRIPTOR_KEY)),
    )
    return {key: loaded(value) for key, value in session.execute(found)}


def rendered_fields(
    session: Session, dag_id: str, run_id: str, task_id: str, map_index: int
) -> dict[str, Any]:
    """The rendered templates as Airflow stores them, masked and cut; empty if they are gone."""
    found = session.scalar(
        select(RenderedTaskInstanceFields.rendered_fields).where(
            RenderedTaskInstanceFields.dag_id == dag_id,
            RenderedTaskInstanceFields.run_id == run_id,
            RenderedTaskInstanceFields.task_id == task_id,
            RenderedTaskInstanceFields.map_index == map_index,
        )
    )
    return dict(found) if isinstance(found, dict) else {}


def loaded(value: object) -> Any:
    """An XCom's value, which is JSON, encoded up to twice."""
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def _read(session: Session, query: Select[Any]) -> Iterator[TaskRun]:
    for dag_id, task_id, run_id, map_index, value, *others in session.execute(query):
        figures = figures_in(loaded(value))
        if figures is not None:
            yield TaskRun(InstanceKey(dag_id, task_id, run_id, map_index), figures, *others)
