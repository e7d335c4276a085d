"""Runs the local task and the map join in one Spark session."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.descriptor import Decision, Descriptor, Snapshot, query_digest
from airflow_hive_opt.documents.report import (
    LOCAL_TASK,
    MAP_JOIN,
    PRELAUNCH,
    EliminatedJoins,
    Report,
    changes,
    unpruned,
)
from airflow_hive_opt.documents.required_keys import FoundKeys, keep_keys
from airflow_hive_opt.documents.storage import StoragePath
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin
from airflow_hive_opt.spark.application.planning import plan_on_spark, rewritten_on_spark
from airflow_hive_opt.spark.application.request import Request, Result
from airflow_hive_opt.spark.application.session_binding import binding, check_binding
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog, catalog_of
from airflow_hive_opt.spark.catalog.lake_files import counted
from airflow_hive_opt.spark.catalog.remote_metastore import PartitionsOf
from airflow_hive_opt.spark.catalog.resolved_names import Names
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.local_task.data_column_keys import longest_list
from airflow_hive_opt.spark.local_task.earlier_runs import EarlierRuns
from airflow_hive_opt.spark.local_task.handed_over import only_identified
from airflow_hive_opt.spark.local_task.local_task import run_local_task
from airflow_hive_opt.spark.local_task.redundant_joins import without_joins
from airflow_hive_opt.spark.local_task.snapshots import hold, key_snapshots, log_newer
from airflow_hive_opt.spark.map_join.execution import execute
from airflow_hive_opt.spark.map_join.prelaunch import check_tables, prelaunch
from airflow_hive_opt.spark.restriction.restrict import restrict, scan_way
from airflow_hive_opt.spark.restriction.row_changes import SOURCE_CHANGED
from airflow_hive_opt.spark.restriction.scan import scanning
from airflow_hive_opt.spark.session.best_effort import best_effort
from airflow_hive_opt.spark.session.clock import Clock
from airflow_hive_opt.spark.session.driver_memory import peak_heap
from airflow_hive_opt.spark.session.glue import is_on_glue
from airflow_hive_opt.spark.session.progress import progress
from airflow_hive_opt.statement.budget import Budget
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.settings import PLANNING_SECONDS
from airflow_hive_opt.statement.tables import reads_no_rows, tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
# What a decision is about if the planner knows no scan.
_WHOLE_STATEMENT = ScanRef("the statement", "", None, "the statement")

_OWN_CODES = {
    SOURCE_CHANGED: Reason.SOURCE_CHANGED,
    Reason.PLANNING_TOO_LONG.sentence: Reason.PLANNING_TOO_LONG,
}
"""The reason codes of statements that pass through for other reasons than their form."""


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
    budget = Budget(request.settings.number(PLANNING_SECONDS))
    with PartitionsOf(session, catalog) as metastore:
        clock = Clock(metastore.work)
        with clock.phase(LOCAL_TASK), progress(session, LOCAL_TASK):
            descriptor, answered, keys = _descriptor(
                session, catalog, metastore, request, hand_over, budget
            )
            sql = descriptor.statement or request.sql
            on_glue = bool(answered) and is_on_glue(session)
            with budget:
                fewer_joins = without_joins(sql, catalog, descriptor, answered, on_glue)
    descriptors.write(descriptor, path)
    log.info("descriptor written to %s", path)
    if keys is not None:
        keep_keys(keys, descriptor.query_digest, descriptor.digest, path)
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
    :class:`~airflow_hive_opt.documents.gates.GateClosed`,
    :class:`~airflow_hive_opt.documents.gates.NothingToDo`, ``DescriptorError``, and
    :class:`~airflow_hive_opt.documents.binding.OtherSession` if this session reads the statement
    differently from the local task's session.
    """
    descriptor = _verified(request, path, digest)
    for name, value in request.session_conf.items():
        session.conf.set(name, value)
    catalog = catalog_of(session)
    clock = Clock(catalog.work)
    with clock.phase(PRELAUNCH):
        check_binding(session, catalog, request.sql, descriptor)
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
    ways = {target.scan: scan_way(target, on_glue) for target in targets}
    for scan, way in ways.items():
        log.info("Spark looks up the partitions of %s by %s: %s", scan.name, way.value, way.cost)
    texts = (fewest_joins, restricted, request.sql)
    application_id = _application_id(session)
    with (
        clock.phase(MAP_JOIN),
        progress(session, MAP_JOIN),
        scanning(session, set(ways.values()), {t.location for t in targets}, longest_list(filters)),
    ):
        answer = execute(session, texts, request.parameters, request.show_rows)
    eliminated = fewer_joins.scans if fewer_joins and answer.text == fewer_joins.text else ()
    for scan in eliminated:
        log.info("%s (%s) has each key once, so its join was removed", scan.name, scan.table)
    fell_back = answer.objection if answer.text not in (fewest_joins, restricted) else None
    report = Report(
        _passed_through(request, fell_back) if fell_back else descriptor,
        str(path),
        clock.seconds,
        clock.work,
        application_id,
        ways={} if fell_back else {scan: way.value for scan, way in ways.items()},
        driver_peak_heap=best_effort(lambda: peak_heap(session)),
        eliminated=eliminated,
    )
    return Result(report, answer.columns, answer.rows, answer.text, answer.plan)


def _descriptor(
    session: SparkSession,
    catalog: SessionCatalog,
    metastore: PartitionsOf,
    request: Request,
    hand_over: bool,
    budget: Budget,
) -> tuple[Descriptor, tuple[RedundantJoin, ...], FoundKeys | None]:
    digest = query_digest(request.sql, request.parameters)
    user_sql = request.sql
    names = Names(session, catalog) if hand_over else None
    with budget:
        if isinstance(catalog, SparkCatalog):
            database = str(session.catalog.currentDatabase())
            with suppress(Exception):  # the planner says what is wrong with the statement
                catalog.look_up_together(tables_of(request.sql, database).reads)
        # Before the keys are read: the map join notices what changes in between.
        of_statement = names.resolve([user_sql]) if names else None
        if of_statement is None or not of_statement.unidentified:
            rewritten = rewritten_on_spark(session, catalog, request)
            request = replace(request, sql=rewritten or user_sql)
        planned = plan_on_spark(session, catalog, request)
    for warning in planned.warnings:
        log.warning("%s", warning)
    answered: tuple[RedundantJoin, ...] = ()
    keys: FoundKeys | None = None
    if planned.passed_through:
        found = _passed_through(request, planned.passed_through)
    else:
        snapshots = key_snapshots(session, catalog, planned)
        if request.hold_snapshots:
            planned, snapshots = _held(session, catalog, request, planned, snapshots)
        asked = planned.decisions
        if names is not None:
            planned = only_identified(planned, lambda texts: names.resolve(texts).unidentified)
        metastore.prefetch(found.table for found in planned.decisions if found.pruned)
        found, answered, keys = run_local_task(
            session,
            catalog,
            metastore,
            planned,
            request.bounds,
            request.parameters,
            EarlierRuns(request.unasked),
            hand_over,
        )
        found = replace(found, snapshots=snapshots)
        if request.sql != user_sql or planned.decisions != asked:
            keys = None  # those of the user's statement may be others
        if of_statement is not None:
            found = replace(found, binding=binding(session, catalog, of_statement))
    if request.max_bytes is not None:
        found = replace(found, targets=tuple(map(catalog.with_bytes, found.targets)))
    statement = planned.sql if planned.sql != user_sql else None
    return replace(found, query_digest=digest, statement=statement), answered, keys


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


def _passed_through(request: Request, why: str) -> Descriptor:
    reason = _OWN_CODES.get(why, Reason.PASSED_THROUGH)
    message = reason.sentence if why in _OWN_CODES else f"{reason.sentence}: {why}"
    digest = query_digest(request.sql, request.parameters)
    if reads_no_rows(request.sql):
        return Descriptor(digest, descriptors.now(), (), ())
    decision = Decision(_WHOLE_STATEMENT, reason, message)
    return Descriptor(digest, descriptors.now(), (), (decision,))
