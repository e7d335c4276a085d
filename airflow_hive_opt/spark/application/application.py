"""Runs the local task and the map join in one Spark session."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.pruning.plan import Plan, passing_through, plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin
from airflow_hive_opt.runtime import descriptor as descriptors
from airflow_hive_opt.runtime.binding import Binding, OtherSession, check_same
from airflow_hive_opt.runtime.descriptor import Decision, Descriptor, Snapshot, query_digest
from airflow_hive_opt.runtime.report import (
    LOCAL_TASK,
    MAP_JOIN,
    PRELAUNCH,
    EliminatedJoins,
    Report,
    changes,
    unpruned,
)
from airflow_hive_opt.runtime.storage import StoragePath
from airflow_hive_opt.spark.application.request import Request, Result
from airflow_hive_opt.spark.application.session_binding import binding
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog, catalog_of
from airflow_hive_opt.spark.catalog.lake_files import counted
from airflow_hive_opt.spark.catalog.remote_metastore import PartitionsOf
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.local_task.correlate import broadcasting, correlate
from airflow_hive_opt.spark.local_task.data_column_keys import longest_list
from airflow_hive_opt.spark.local_task.earlier_runs import EarlierRuns
from airflow_hive_opt.spark.local_task.local_task import run_local_task
from airflow_hive_opt.spark.local_task.redundant_joins import without_joins
from airflow_hive_opt.spark.local_task.snapshots import hold, key_snapshots, log_newer
from airflow_hive_opt.spark.map_join.execution import execute
from airflow_hive_opt.spark.map_join.prelaunch import accepts, check_tables, prelaunch
from airflow_hive_opt.spark.restriction.restrict import restrict, scan_way
from airflow_hive_opt.spark.restriction.row_changes import SOURCE_CHANGED
from airflow_hive_opt.spark.restriction.scan import scanning
from airflow_hive_opt.spark.session.best_effort import best_effort
from airflow_hive_opt.spark.session.clock import Clock
from airflow_hive_opt.spark.session.dialect import other_reading
from airflow_hive_opt.spark.session.driver_memory import peak_heap
from airflow_hive_opt.spark.session.error_text import in_words
from airflow_hive_opt.spark.session.glue import is_on_glue
from airflow_hive_opt.spark.session.progress import progress
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.tables import tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def prune(
    session: SparkSession,
    request: Request,
    path: StoragePath,
    hand_over: bool = True,
    catalog: SessionCatalog | None = None,
) -> Report:
    """Runs the local task and writes the partition descriptor to ``path``.

    The local task plans the statement, collects keys and looks up partitions in the metastore.
    Set ``hand_over`` if another application reads the descriptor: the descriptor then records how
    this session reads the statement. Pass a new ``catalog`` to use its answers again in
    :func:`completed`. The settings of ``request`` stay set in ``session``.
    Raises ``PlanError`` only if Spark rejects the statement too, and ``DescriptorError``.
    """
    for name, value in request.session_conf.items():
        session.conf.set(name, value)
    catalog = catalog or catalog_of(session)
    with PartitionsOf(session, catalog) as metastore:
        clock = Clock(metastore.work)
        with clock.phase(LOCAL_TASK), progress(session, LOCAL_TASK):
            descriptor, answered = _descriptor(session, catalog, metastore, request)
            if hand_over:
                descriptor = replace(
                    descriptor, binding=_binding(session, catalog, request, descriptor)
                )
            sql = descriptor.statement or request.sql
            on_glue = bool(answered) and is_on_glue(session)
            fewer_joins = without_joins(sql, catalog, descriptor, answered, on_glue)
    descriptors.write(descriptor, path)
    log.info("descriptor written to %s", path)
    for line in unpruned(descriptor):
        log.info("%s", line)
    return Report(
        descriptor,
        str(path),
        clock.seconds,
        clock.work,
        _application_id(session),
        driver_peak_heap=peak_heap(session),
        fewer_joins=fewer_joins,
    )


def join(session: SparkSession, request: Request, pruned: Report, path: StoragePath) -> Result:
    """Runs the map join after its local task in the same application; see :func:`map_join`.

    The local task has just run, so this function does not look up the partitions again. It leaves
    out joins with small tables whose keys decide the join (``pruned.fewer_joins``).
    """
    descriptor = _verified(request, path, pruned.descriptor.digest)
    catalog = catalog_of(session)
    result = _run(session, catalog, request, path, descriptor, descriptor, pruned.fewer_joins)
    report = replace(
        result.report,
        seconds={**pruned.seconds, **result.report.seconds},
        work={**pruned.work, **result.report.work},
    )
    return replace(result, report=report)


def map_join(session: SparkSession, request: Request, path: StoragePath, digest: str) -> Result:
    """Runs the map join: prelaunch from the descriptor at ``path``, gates, then the statement.

    ``digest`` is the descriptor's digest as the local task returned it. Raises
    :class:`~airflow_hive_opt.runtime.gates.GateClosed`,
    :class:`~airflow_hive_opt.runtime.gates.NothingToDo`, ``DescriptorError``, and
    :class:`~airflow_hive_opt.runtime.binding.OtherSession` if this session reads the statement
    differently from the local task's session.
    """
    descriptor = _verified(request, path, digest)
    for name, value in request.session_conf.items():
        session.conf.set(name, value)
    catalog = catalog_of(session)
    clock = Clock(catalog.work)
    with clock.phase(PRELAUNCH):
        _check_binding(session, catalog, request, descriptor)
        check_tables(session, catalog, descriptor)
        targets = prelaunch(catalog, descriptor, request.parameters)
        if request.max_bytes is not None:
            targets = tuple(catalog.with_bytes(target) for target in targets)
        files = tuple(counted(session, found) for found in descriptor.planned_files)
        log_newer(session, descriptor.snapshots)
    vanished, appeared = changes(descriptor.targets, targets)
    current = replace(descriptor, targets=targets, planned_files=files)
    result = _run(session, catalog, request, path, descriptor, current)
    report = replace(
        result.report,
        seconds={**clock.seconds, **result.report.seconds},
        work={**clock.work, **result.report.work},
        vanished=vanished,
        appeared=appeared,
    )
    return replace(result, report=report)


def _binding(
    session: SparkSession, catalog: SessionCatalog, request: Request, descriptor: Descriptor
) -> Binding:
    scanned = {target.table for target in descriptor.targets}
    scanned |= {found.table for found in descriptor.row_filters}
    return binding(session, catalog, request.sql, scanned)


def _check_binding(
    session: SparkSession, catalog: SessionCatalog, request: Request, descriptor: Descriptor
) -> None:
    """Raises ``OtherSession`` for another session's descriptor, unless it prunes nothing."""
    if not (descriptor.targets or descriptor.row_filters or descriptor.statement):
        return
    if descriptor.binding is None:
        raise OtherSession(
            "the partition list is refused: it belongs to an application that also ran the join. "
            "Pass the output of a local task to this task"
        )
    check_same(descriptor.binding, _binding(session, catalog, request, descriptor))


def _application_id(session: SparkSession) -> str | None:
    return session.conf.get("spark.app.id", None)


def _verified(request: Request, path: StoragePath, digest: str) -> Descriptor:
    return descriptors.read(path, query_digest(request.sql, request.parameters), digest)


def _run(
    session: SparkSession,
    catalog: SessionCatalog,
    request: Request,
    path: StoragePath,
    descriptor: Descriptor,
    current: Descriptor,
    fewer_joins: EliminatedJoins | None = None,
) -> Result:
    """Checks the gates, then runs the statement on the partitions of ``current``.

    ``fewer_joins`` is the statement without the joins that the keys decide, if there are any.
    """
    request.gates.check(current)
    targets = current.targets
    clock = Clock(catalog.work)
    filters = descriptor.row_filters
    sql = descriptor.statement or request.sql
    on_glue = is_on_glue(session)
    restricted = restrict(sql, targets, filters, descriptor.changes, on_glue)
    fewest_joins = fewer_joins.text if fewer_joins else restricted
    ways = {target.alias: scan_way(target, on_glue) for target in targets}
    for alias, way in ways.items():
        log.info("Spark looks up the partitions of %s by %s: %s", alias, way.value, way.cost)
    texts = (fewest_joins, restricted, request.sql)
    application_id = _application_id(session)
    with (
        clock.phase(MAP_JOIN),
        progress(session, MAP_JOIN),
        scanning(session, set(ways.values()), {t.location for t in targets}, longest_list(filters)),
    ):
        answer = execute(session, texts, request.parameters, request.show_rows)
    eliminated = fewer_joins.tables if fewer_joins and answer.text == fewer_joins.text else ()
    for table in eliminated:
        log.info("%s has each key once, so its join was removed", table)
    fell_back = answer.objection if answer.text not in (fewest_joins, restricted) else None
    report = Report(
        _passed_through(request, fell_back) if fell_back else descriptor,
        str(path),
        clock.seconds,
        clock.work,
        application_id,
        scans={} if fell_back else {alias: way.value for alias, way in ways.items()},
        driver_peak_heap=best_effort(lambda: peak_heap(session)),
        eliminated=eliminated,
    )
    return Result(report, answer.columns, answer.rows, answer.text, answer.plan)


def plan_on_spark(session: SparkSession, catalog: SessionCatalog, request: Request) -> Plan:
    """Plans the request's statement; a statement that only Spark understands passes through.

    Raises ``PlanError`` if Spark rejects the statement too.
    """
    sql = request.sql
    if setting := other_reading(session, sql):
        return passing_through(sql, f"{setting} changes how the statement is read")
    try:
        return plan(sql, catalog, request.settings)
    except PlanError as error:
        if not accepts(session, sql, request.parameters):
            raise
        return passing_through(sql, f"the planner says {error}, but Spark accepts it")
    except (PySparkException, Py4JJavaError) as error:
        return passing_through(sql, f"a table can't be looked up: {in_words(error)}")
    except Exception as error:
        log.warning("the planner fails on this statement", exc_info=True)
        return passing_through(sql, f"the planner fails on it ({type(error).__name__})")


def _descriptor(
    session: SparkSession,
    catalog: SessionCatalog,
    metastore: PartitionsOf,
    request: Request,
) -> tuple[Descriptor, tuple[RedundantJoin, ...]]:
    digest = query_digest(request.sql, request.parameters)
    if isinstance(catalog, SparkCatalog):
        database = str(session.catalog.currentDatabase())
        with suppress(Exception):  # the planner says what is wrong with the statement
            catalog.look_up_together(tables_of(request.sql, database).reads)
    user_sql, rewritten = request.sql, _rewritten(session, catalog, request)
    if rewritten is not None:
        request = replace(request, sql=rewritten)
    planned = plan_on_spark(session, catalog, request)
    for warning in planned.warnings:
        log.warning("%s", warning)
    answered: tuple[RedundantJoin, ...] = ()
    if planned.passed_through:
        found = _passed_through(request, planned.passed_through)
    else:
        snapshots = key_snapshots(session, catalog, planned)
        if request.hold_snapshots:
            planned, snapshots = _held(session, catalog, request, planned, snapshots)
        metastore.prefetch(found.table for found in planned.decisions if found.pruned)
        found, answered = run_local_task(
            session,
            catalog,
            metastore,
            planned,
            request.bounds,
            request.parameters,
            EarlierRuns(request.unasked),
        )
        found = replace(found, snapshots=snapshots)
    if request.max_bytes is not None:
        found = replace(found, targets=tuple(map(catalog.with_bytes, found.targets)))
    statement = planned.sql if planned.sql != user_sql else None
    return replace(found, query_digest=digest, statement=statement), answered


def _held(
    session: SparkSession,
    catalog: SessionCatalog,
    request: Request,
    planned: Plan,
    snapshots: tuple[Snapshot, ...],
) -> tuple[Plan, tuple[Snapshot, ...]]:
    """The plan of the statement held to ``snapshots``, and which of them are held."""
    if not snapshots:
        log.warning("no table is held to a snapshot: no Iceberg table gives keys")
        return planned, snapshots
    holding = hold(session, catalog, planned, snapshots)
    replanned = plan_on_spark(session, catalog, replace(request, sql=holding.sql))
    if replanned.passed_through:
        log.warning("no table is held to a snapshot: %s", replanned.passed_through)
        return planned, snapshots
    holding.log()
    return replanned, holding.snapshots


def _rewritten(session: SparkSession, catalog: SessionCatalog, request: Request) -> str | None:
    """Applies the correlation rules and map join sizes; ``None`` if the statement is unchanged."""
    if other_reading(session, request.sql):
        return None
    try:
        found = correlate(session, catalog, request.sql, request.settings, request.parameters)
        sql = broadcasting(session, catalog, found.sql, request.settings, request.parameters)
    except (PySparkException, Py4JJavaError) as error:  # a table can't be looked up
        log.info("not rewritten: %s", in_words(error))
        return None
    except Exception:
        log.warning("the rewriting fails on this statement", exc_info=True)
        return None
    if found.applied:
        log.info("rewritten by the Correlation Optimizer: %s", ", ".join(found.applied))
    for name, reason in found.refused:
        log.debug("not rewritten (%s): %s", name, reason.sentence)
    return sql if sql != request.sql else None


def _passed_through(request: Request, why: str) -> Descriptor:
    reason = Reason.SOURCE_CHANGED if why == SOURCE_CHANGED else Reason.PASSED_THROUGH
    message = reason.sentence if why == SOURCE_CHANGED else f"{reason.sentence}: {why}"
    digest = query_digest(request.sql, request.parameters)
    decision = Decision("the statement", "", reason, message)
    return Descriptor(digest, descriptors.now(), (), (decision,))
