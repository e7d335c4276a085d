"""Runs a statement once; chooses its text by analysis and planning, before any work begins."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Optional

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.remote_operation import OverwrittenPartition
from airflow_hive_opt.restriction.row_changes import SOURCE_CHANGED
from airflow_hive_opt.spark.map_join.branch import NotPublished
from airflow_hive_opt.spark.map_join.command import Command
from airflow_hive_opt.spark.map_join.dynamic_overwrite import dynamic_overwrite, empty_if_unwritten
from airflow_hive_opt.spark.map_join.job_attempt import own_job_attempt
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.connect_frames import plan_metrics
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.spark.session.statement_errors import (
    cannot_plan,
    objection_in,
)
from airflow_hive_opt.statement.tables import is_query, may_insert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
Parameters = Mapping[str, object]
# Columns, their types, rows, and the plan that has run.
_Plan = Optional[Callable[[], Any]]
_Names = tuple[str, ...]
_Found = tuple[_Names, _Names, tuple[tuple[object, ...], ...], _Plan]
# As Spark 3.5 and Spark 4 raise it, unlike a plan that contains the text.
_RAISED = re.compile(rf"(RuntimeException: |USER_RAISED_EXCEPTION\] ?){re.escape(SOURCE_CHANGED)}")


@dataclass(frozen=True)
class Beginning:
    """The ``text`` that is about to run, and Spark's ``objection`` to an earlier one.

    ``before`` is the partition that it replaces, if :mod:`dynamic_overwrite` lets Spark do that.
    """

    text: str
    objection: str | None
    before: OverwrittenPartition | None = None


Begins = Callable[[Beginning], AbstractContextManager[None]]


@dataclass(frozen=True)
class _Planned:
    """What ``run`` runs is planned; ``before`` is that of :class:`Beginning`."""

    run: Callable[[], _Found]
    before: OverwrittenPartition | None = None


@dataclass(frozen=True)
class Answer:
    """A statement's columns with their types, its first rows, and the ``text`` that ran.

    ``plan`` gives the plan that has run: the JVM's, or over Spark Connect its operators with their
    metrics. It is ``None`` if the plan is not known. It is a function because a call of the JVM may
    fail after rows are written. ``objection`` is Spark's
    error for an earlier text; ``None`` if the first text ran.
    """

    text: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    plan: Callable[[], Any] | None
    objection: str | None


def execute(
    session: SparkSession,
    texts: Sequence[str],
    parameters: Parameters,
    show_rows: int,
    begins: Begins = lambda _: nullcontext(),
    by_index: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Answer:
    """Runs the first of ``texts`` that Spark can plan, and returns a SELECT's first rows.

    All texts have the same result. The most restricted text comes first, the user's own text last.
    Once a text that writes has begun to run, no other text is tried: Spark raises an
    ``AnalysisException`` also if the metastore fails after the files are committed. The exception
    is a MERGE whose source has changed: it fails while it reads, and commits once at its end. So is
    a text that ran on a branch which could not be published. ``begins`` makes the block in which a
    text runs that writes. ``by_index`` has the texts with conditions by key indexes, each with the
    settings of the session for it. If such a text can't be planned, the next one is tried whatever
    the error is: it names a branch or a snapshot, which a catalog may refuse in any way.
    """
    *restricted, plain = dict.fromkeys(texts)
    prepare = _query if is_query(plain) else _command
    objection = None
    for text in restricted:
        with conf_set(session, by_index.get(text, {})):
            try:
                planned = prepare(session, text, parameters, show_rows)
            except (PySparkException, Py4JJavaError) as error:
                if text not in by_index and not cannot_plan(error):
                    raise
                objection = in_words(error)
                log.warning(
                    "Spark rejects the pruned statement, so a less pruned one runs: %s", objection
                )
                continue
            log.debug("running: %s", text)
            try:
                with begins(Beginning(text, objection, planned.before)):
                    return Answer(text, *planned.run(), objection)
            except NotPublished as why:
                objection = str(why)
                log.warning("%s, so the statement runs again without the key index", objection)
            except (PySparkException, Py4JJavaError) as error:
                if SOURCE_CHANGED not in text or not _RAISED.search(str(error)):
                    raise
                objection = SOURCE_CHANGED
                log.warning("%s, so the statement runs without its keys", SOURCE_CHANGED)
    prepare = _query if is_query(plain) else _plain
    planned = prepare(session, plain, parameters, show_rows)
    with begins(Beginning(plain, objection, planned.before)):
        return Answer(plain, *planned.run(), objection)


def _query(session: SparkSession, text: str, parameters: Parameters, show_rows: int) -> _Planned:
    """Plans a SELECT. Over Spark Connect it also runs the SELECT, which is the only way to plan."""
    frame = session.sql(text, args=dict(parameters))
    shown = frame.limit(show_rows) if show_rows else frame
    columns, types = _columns(frame)

    def rows() -> tuple[tuple[object, ...], ...]:
        return tuple(map(tuple, shown.collect())) if show_rows else ()

    if is_remote(session):
        found = rows()
        metrics = (lambda: plan_metrics(shown)) if show_rows else None
        return _Planned(lambda: (columns, types, found, metrics))
    plan = shown._jdf.queryExecution().executedPlan()
    return _Planned(lambda: (columns, types, rows(), (lambda: plan) if show_rows else None))


def _command(session: SparkSession, text: str, parameters: Parameters, show_rows: int) -> _Planned:
    """Plans a statement that writes; does not begin to run it."""
    if not is_remote(session):
        command = Command(session, text, parameters)
        command.plan()
        return _Planned(lambda: _run(session, command, show_rows))
    if objection := _objection(session, text, parameters):
        raise objection
    return _over_connect(session, text, parameters, show_rows)


def _plain(session: SparkSession, text: str, parameters: Parameters, show_rows: int) -> _Planned:
    """The user's own text; planned when it runs, since its plan may have every partition.

    The exception is a text that overwrites one partition over Spark Connect.
    """
    if is_remote(session):
        return _over_connect(session, text, parameters, show_rows, is_accepted=False)
    if not may_insert(text):
        return _Planned(lambda: _sql(session, text, parameters, show_rows))
    return _Planned(lambda: _run(session, Command(session, text, parameters), show_rows))


def _objection(
    session: SparkSession, text: str, parameters: Parameters
) -> AnalysisException | None:
    """Why Spark can't plan a statement, which does not run."""
    return objection_in(session.sql(f"EXPLAIN {text}", args=dict(parameters)).collect())


def _accepts(session: SparkSession, text: str, parameters: Parameters) -> bool:
    try:
        return _objection(session, text, parameters) is None
    except PySparkException as error:
        if not cannot_plan(error):
            raise
        return False


def _over_connect(
    session: SparkSession,
    text: str,
    parameters: Parameters,
    show_rows: int,
    is_accepted: bool = True,
) -> _Planned:
    """A statement that writes over Spark Connect; ``is_accepted`` says that Spark can plan it."""
    found = dynamic_overwrite(session, text, parameters)
    if found is None or not (is_accepted or _accepts(session, text, parameters)):
        return _Planned(lambda: _sql(session, text, parameters, show_rows))
    overwrite = found

    def run() -> _Found:
        with conf_set(session, overwrite.conf):
            answer = _sql(session, overwrite.text, parameters, show_rows)
        empty_if_unwritten(session, overwrite.before)
        return answer

    return _Planned(run, overwrite.before)


def _run(session: SparkSession, command: Command, show_rows: int) -> _Found:
    if command.overwrites_one_partition() and command.overwrite():
        return (), (), (), lambda: command.executed
    with own_job_attempt(session, command.tables_of_inserts()):
        if command.run_as_planned():
            return (), (), (), lambda: command.executed
        return _sql(session, command.text, command.parameters, show_rows)


def _sql(session: SparkSession, text: str, parameters: Parameters, show_rows: int) -> _Found:
    frame = session.sql(text, args=dict(parameters))
    columns, types = _columns(frame)
    rows = tuple(map(tuple, frame.take(show_rows))) if columns else ()
    if is_remote(session):
        return columns, types, rows, lambda: plan_metrics(frame)
    return columns, types, rows, lambda: frame._jdf.queryExecution().executedPlan()


def _columns(frame: Any) -> tuple[_Names, _Names]:
    """The names and the types of a frame's columns."""
    found = frame.dtypes
    return tuple(name for name, _ in found), tuple(kind for _, kind in found)
