"""The local task without Spark (HIVE-5119, execution, the local work): it runs in the worker.

Tables and partitions come from the metastore, and keys from the small tables' files. The
descriptor is the one that Spark's local task writes, except that its list may have partitions too
many. If the worker can't do all of it, Spark runs the local task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from upath import UPath

from airflow_hive_opt.documents.binding import CASE_SENSITIVE, WORKER, Binding, that_change_values
from airflow_hive_opt.documents.clock import Clock
from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.gates import JoinStopped
from airflow_hive_opt.documents.index_trial import TrialArm
from airflow_hive_opt.documents.job import Job, Outcome, Status
from airflow_hive_opt.documents.report import LOCAL_TASK, Report, headline, keep_report
from airflow_hive_opt.documents.required_keys import FoundKeys
from airflow_hive_opt.key_index.manifest import has_index
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.earlier_runs import EarlierRuns
from airflow_hive_opt.local_task.index_trial import arm_of
from airflow_hive_opt.local_task.local_task import run_local_task
from airflow_hive_opt.local_task.passed_through import passed_through
from airflow_hive_opt.local_task.published import publish
from airflow_hive_opt.local_task.shared_key_sets import SharedKeySets
from airflow_hive_opt.local_task.stopped import stopped
from airflow_hive_opt.metastores.metastore import MetastoreError, Remote
from airflow_hive_opt.metastores.statement_catalog import StatementCatalog
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.lake_formats import is_indexable
from airflow_hive_opt.worker.described_keys import WorkerKeyQueries
from airflow_hive_opt.worker.engine import MetastoreTables, OtherScans, WorkerEngine
from airflow_hive_opt.worker.lakes.catalog import StatementTables
from airflow_hive_opt.worker.planning import located, planned
from airflow_hive_opt.worker.settings import other_catalogs
from airflow_hive_opt.worker.sizes import bytes_of_files, with_bytes
from airflow_hive_opt.worker.tables import Tables
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)

# Reasons that may not hold with the conditions that the worker leaves out.
_DOUBTFUL = (
    Reason.CONDITION_NOT_DETERMINISTIC,
    Reason.ALL_PARTITIONS_MATCH,
    Reason.MOST_PARTITIONS_MATCH,
    Reason.LIST_TOO_LARGE,
)


@dataclass(frozen=True)
class Place:
    """Where the worker reads, and what it knows of the map join's session.

    - ``metastore`` is that of the session; ``is_on_glue`` says that it is AWS Glue.
    - ``settings`` are Spark's settings as far as they are known before Spark starts.
    - ``open_path`` makes a path from the URI of a table's folder. ``has_storage`` says that it has
      a connection of its own.
    - ``open_key_sets`` makes a path from the URI of a key set, and from that of the key indexes.
    """

    metastore: Remote
    is_on_glue: bool
    settings: Mapping[str, str]
    open_path: Callable[[str], StoragePath]
    has_storage: bool = False
    open_key_sets: Callable[[str], StoragePath] = UPath


@dataclass(frozen=True)
class Found:
    """What the worker's local task has found, before anything is written."""

    descriptor: Descriptor
    keys: FoundKeys | None
    clock: Clock


def find(job: Job, place: Place) -> Found:
    """Collects keys and looks up partitions; writes nothing.

    Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered` with the reason if Spark has to
    do it.
    """
    clock = Clock()
    try:
        with place.metastore, clock.phase(LOCAL_TASK, place.metastore.work):
            descriptor, keys = _descriptor(job, place)
    except MetastoreError as error:
        raise Unanswered(f"the metastore fails: {error}") from error
    return Found(descriptor, keys, clock)


def hand_over(found: Found, job: Job, path: StoragePath) -> Outcome:
    """Writes the descriptor to ``path`` with the report next to it, and checks the job's gates.

    Raises ``DescriptorError`` if the descriptor can't be written.
    """
    descriptor, clock = found.descriptor, found.clock
    publish(descriptor, found.keys, path)
    report = Report(descriptor, str(path), dict(clock.seconds), dict(clock.work), local_task=WORKER)
    keep_report(report, path)
    try:
        job.gates.check(descriptor)
    except JoinStopped as stop:
        return stopped(stop, report)
    return Outcome(Status.DONE, headline(descriptor), report.summary())


def _descriptor(job: Job, place: Place) -> tuple[Descriptor, FoundKeys | None]:
    if arm_of(job) is TrialArm.UNTOUCHED:
        return replace(passed_through(job, Reason.LEFT_TO_SPARK.sentence), binding=None), None
    settings = {**place.settings, **job.session_conf}
    own = StatementCatalog(
        place.metastore,
        catalogs=other_catalogs(settings),
        measured=lambda storage: bytes_of_files(storage, place.open_path),
    )
    catalog = StatementTables(own, place.metastore, settings, place.open_path, place.has_storage)
    plan = planned(job, catalog, settings)
    if plan.passed_through:
        return replace(passed_through(job, plan.passed_through), binding=None), None
    tables = Tables(MetastoreTables(catalog, place.metastore), place.open_path, lake=catalog.lake)
    engine = WorkerEngine(tables, job.bounds, job.parameters)
    earlier = EarlierRuns(job.skipped_keys)
    home = place.metastore.default_location()

    def binding(sql: str) -> Binding:
        return _binding(home, located(catalog, sql), settings)

    shared = None
    if job.key_sets:
        folder = place.open_key_sets(job.key_sets)
        queries = WorkerKeyQueries(job, tables, engine, binding, settings)
        shared = SharedKeySets(folder, queries)
    context = LocalTaskContext(
        engine, place.metastore, place.is_on_glue, job.parameters, earlier, True, shared
    )
    if job.index_path:
        _check_no_index(place.open_key_sets(job.index_path), plan, catalog)
    found = run_local_task(context, plan, OtherScans())
    if context.metastore_failed:
        raise Unanswered("a metastore call failed; the log says which")
    if engine.snapshots and job.hold_snapshots:
        raise Unanswered("hold_snapshots is True, and only Spark reads tables at their snapshots")
    if engine.leaves_out:
        _check_pruned(found.descriptor)
    descriptor = replace(
        found.descriptor,
        query_digest=job.query_digest,
        binding=binding(job.statement).for_worker(engine.calls),
        small_tables=engine.small_tables,
        snapshots=engine.snapshots,
    )
    if job.gates.max_bytes is not None:
        measured = (
            with_bytes(place.metastore, place.open_path, target) for target in descriptor.targets
        )
        descriptor = replace(descriptor, targets=tuple(measured))
    return descriptor, found.keys


def _check_no_index(folder: StoragePath, plan: Plan, catalog: StatementTables) -> None:
    """Leaves a statement to Spark, which looks keys up, if one of its tables has a key index."""
    for decision in plan.decisions:
        if not is_indexable(decision.table.provider):
            continue
        uuid = catalog.lake(decision.table).uuid
        try:
            found = has_index(folder, uuid)
        except Exception as error:  # drivers raise errors of their own
            raise Unanswered(f"can't read the key indexes in {folder}: {error}") from error
        if found:
            raise Unanswered(f"{decision.table.name} has a key index, and only Spark uses it")


def _binding(
    home: str | None, tables: Mapping[str, str | None], settings: Mapping[str, str]
) -> Binding:
    """How the map join's session reads these tables, as far as it is known before Spark starts."""
    return Binding(
        "spark_catalog",
        "default",
        home,
        tables,
        {
            CASE_SENSITIVE: "false",  # Spark's default, and the only value that a worker accepts
            **that_change_values(settings),
        },
    )


def _check_pruned(descriptor: Descriptor) -> None:
    """Leaves a statement to Spark if Spark may prune a scan by a left-out condition."""
    for decision in descriptor.decisions:
        if decision.reason in _DOUBTFUL:
            raise Unanswered(
                f"the worker leaves out conditions that may prune {decision.scan.name}"
            )
