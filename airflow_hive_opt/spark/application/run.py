"""The run of a statement, from its text to its rows and its report: HIVE-5119 on Spark.

1. The *local task* rewrites the statement if that is faster, plans it, collects the keys of its
   small tables, asks the metastore for the partitions that match them, and writes the descriptor.
   If the worker can do it, it has done it before Spark is there: ``worker/local_task.py``.
2. *Prelaunch* reads the descriptor of the worker or of another application, and looks up which of
   its partitions there are now. An application goes on with a list that it has just found itself.
3. The *gates* may stop the run.
4. The *map join* runs the statement on these partitions alone.
5. The *report* says what was decided, found and read.

Operators, sensors, command line, ``spark-submit``, Spark Connect and the shared Spark all call
:func:`run_job`. They differ in where the session comes from and where the outcome goes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from upath import UPath

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.binding import WORKER, OtherSession
from airflow_hive_opt.documents.clock import Clock
from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.gates import JoinStopped
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.documents.report import (
    LOCAL_TASK,
    MAP_JOIN,
    PRELAUNCH,
    EliminatedJoins,
    Report,
    changes,
    headline,
    keep_report,
    read_report,
    report_path,
)
from airflow_hive_opt.documents.required_keys import FoundKeys
from airflow_hive_opt.local_task.index_trial import index_path_of
from airflow_hive_opt.local_task.passed_through import passed_through
from airflow_hive_opt.local_task.published import publish
from airflow_hive_opt.local_task.redundant_joins import without_joins
from airflow_hive_opt.local_task.stopped import stopped
from airflow_hive_opt.restriction.indexed import with_indexes_of
from airflow_hive_opt.restriction.restrict import ways_of
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin
from airflow_hive_opt.spark.application.begun import Begins, begin_claimed, kept_for_retry
from airflow_hive_opt.spark.application.completion import Result, outcome_of
from airflow_hive_opt.spark.application.failure import FAILURES, outcome_of_failure
from airflow_hive_opt.spark.application.handed_over import brought_up_to_date
from airflow_hive_opt.spark.application.planning import plan_job
from airflow_hive_opt.spark.application.required_partitions import written_required
from airflow_hive_opt.spark.catalog.lakes.key_indexes import index_folder
from airflow_hive_opt.spark.catalog.remote_metastore import PartitionsOf
from airflow_hive_opt.spark.catalog.session_binding import binding
from airflow_hive_opt.spark.catalog.session_catalog import catalog_of
from airflow_hive_opt.spark.local_task.data_columns import longest_list
from airflow_hive_opt.spark.local_task.scans_of_plan import prune_scans
from airflow_hive_opt.spark.map_join.execution import Beginning
from airflow_hive_opt.spark.map_join.restricted_run import run_restricted
from airflow_hive_opt.spark.map_join.texts import Restricted
from airflow_hive_opt.spark.session.connect import raise_if_lost
from airflow_hive_opt.spark.session.driver_memory import peak_heap
from airflow_hive_opt.spark.session.partition_lookup import scanning
from airflow_hive_opt.spark.session.progress import progress
from airflow_hive_opt.spark.session.session import own_session
from airflow_hive_opt.statement.budget import Budget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)


def run_job(
    session: SparkSession,
    job: Job,
    open_path: Callable[[str], StoragePath] = UPath,
    begins: Begins = None,
) -> Outcome:
    """Runs the job's stages and returns how they ended; the outcome holds an error's message.

    ``open_path`` makes a path from a URI. ``begins`` is for a session on a Spark Connect server.
    """
    found = _outcome(lambda: own_session(session), job, open_path, begins=begins)
    return replace(found, token=job.token)


def run_in_session(
    session: SparkSession,
    job: Job,
    open_path: Callable[[str], StoragePath],
    receive: Callable[[Result], Result],
) -> Outcome:
    """Like :func:`run_job`, but in ``session`` itself, with the rows as Spark returns them.

    What the statement sets, defines or uses holds for later statements in the session. ``receive``
    gets the result of a statement that has run, and gives the one for the outcome; must not fail.
    """
    return replace(_outcome(lambda: session, job, open_path, receive), token=job.token)


def _outcome(
    session: Callable[[], SparkSession],
    job: Job,
    open_path: Callable[[str], StoragePath],
    receive: Callable[[Result], Result] = lambda result: result,
    begins: Begins = None,
) -> Outcome:
    """Runs the stages. Only here errors become outcomes."""
    pruned: Report | None = None
    try:
        path, handed_over = open_path(job.path), open_path(job.descriptor or job.path)
        shared = open_path(job.key_sets) if job.key_sets else None
    except (ValueError, ImportError) as error:
        return Outcome(Status.REFUSED, in_words(error))
    try:
        run = Run(session(), job, path, shared, begins, open_path)
        if job.stages is Stages.KEYS:
            return run.required_partitions()
        if job.descriptor is not None:
            digest = job.digest or ""
            result = run.map_join_of(handed_over, digest)
        else:
            pruned = run.local_task(hand_over=job.stages is Stages.LOCAL_TASK)
            digest = pruned.descriptor.digest
            if job.stages is Stages.LOCAL_TASK:
                keep_report(pruned, path)
                job.gates.check(pruned.descriptor)
                return Outcome(Status.DONE, headline(pruned.descriptor), pruned.summary())
            result = run.map_join(pruned.descriptor, fewer_joins=pruned.fewer_joins)
    except JoinStopped as stop:
        return stopped(stop, pruned or Report(stop.descriptor, str(handed_over)), job.digest)
    except FAILURES as error:
        return outcome_of_failure(error, pruned)
    # The statement has run: no error from here on may cause a retry.
    return run.done(receive(result), digest)


class Run:
    """The stages of one job in one session, with one catalog and one clock.

    The settings of the job's ``SET`` lines stay set in the session. ``path`` and ``key_sets`` are
    the job's, opened. ``begins`` is told of a statement that writes on a Spark Connect server.
    ``open_path`` opens the folder of the key indexes.
    """

    def __init__(
        self,
        session: SparkSession,
        job: Job,
        path: StoragePath,
        key_sets: StoragePath | None = None,
        begins: Begins = None,
        open_path: Callable[[str], StoragePath] = UPath,
    ) -> None:
        self._session = session
        self._begins = begins
        self._job = job
        self._path = path
        for name, value in job.session_conf.items():
            session.conf.set(name, value)
        self._indexes = index_folder(session, index_path_of(job), open_path)
        self._catalog = catalog_of(session, self._indexes)
        self._key_sets = key_sets
        self._clock = Clock()
        # now, because once the statement has run, a failing call may not fail the task
        self._application_id = session.conf.get("spark.app.id", None)

    def required_partitions(self) -> Outcome:
        """Writes the partitions that the keys require, whether they exist or not."""
        return written_required(self._session, self._catalog, self._job, self._path)

    def local_task(self, hand_over: bool) -> Report:
        """Collects keys, looks up partitions in the metastore, and writes the descriptor.

        Set ``hand_over`` if another application reads the descriptor: the descriptor then records
        how this session reads the statement. Raises ``PlanError`` only if Spark rejects the
        statement too, and ``DescriptorError``.
        """
        budget = Budget(self._job.settings.switches.planning_seconds)
        with (
            PartitionsOf(self._session, self._catalog) as metastore,
            self._clock.phase(LOCAL_TASK, metastore.work),
            progress(self._session, LOCAL_TASK),
        ):
            descriptor, answered, keys = self._descriptor(metastore, hand_over, budget)
            with budget:
                fewer_joins = self._without_joins(descriptor, answered)
        raise_if_lost(self._session)  # before a gate, or a map join, relies on what was found
        publish(descriptor, keys, self._path)
        report = self._report(descriptor)
        heap = peak_heap(self._session)
        return replace(report, driver_peak_heap=heap, fewer_joins=fewer_joins)

    def map_join_of(self, path: StoragePath, digest: str) -> Result:
        """Runs the map join of a local task that has run elsewhere, with prelaunch before it.

        ``path`` has the local task's descriptor, ``digest`` is the descriptor's as the local task
        returned it. Raises what :meth:`map_join` raises, ``DescriptorError``, and
        :class:`~airflow_hive_opt.documents.binding.OtherSession` if this session reads the
        statement differently from the local task's session. A worker's list that does not fit this
        session costs only the time of a local task here.
        """
        descriptor = descriptors.read(path, self._job.query_digest, digest)
        try:
            with self._clock.phase(PRELAUNCH, self._catalog.work):
                current = brought_up_to_date(self._session, self._catalog, self._job, descriptor)
        except OtherSession as error:
            raise_if_lost(self._session)
            if descriptor.reader != WORKER:
                raise
            log.warning("Spark reads the keys of the worker again: %s", error)
            pruned = self.local_task(hand_over=False)
            return self.map_join(pruned.descriptor, fewer_joins=pruned.fewer_joins)
        raise_if_lost(self._session)
        if self._job.stages is Stages.BOTH:
            self._clock.add(best_effort(lambda: read_report(report_path(path)).summary))
        vanished, appeared = changes(descriptor.targets, current.targets)
        result = self.map_join(descriptor, current, path=path)
        read_by = descriptor.reader
        report = replace(result.report, vanished=vanished, appeared=appeared, local_task=read_by)
        return replace(result, report=report)

    def map_join(
        self,
        descriptor: Descriptor,
        current: Descriptor | None = None,
        fewer_joins: EliminatedJoins | None = None,
        path: StoragePath | None = None,
    ) -> Result:
        """Checks the gates, then runs the statement on the partitions of ``current``.

        ``current`` is the descriptor with the partitions as prelaunch has found them; after a local
        task in the same application it is the descriptor itself. ``fewer_joins`` is the statement
        without the joins that the keys decide. ``path`` is where the descriptor is. Raises
        :class:`~airflow_hive_opt.documents.gates.JoinStopped`, and ``DescriptorError``.
        """
        current = current or descriptor
        self._job.gates.check(current)
        targets, job = current.targets, self._job
        ways = ways_of(targets, self._catalog.is_on_glue)
        for scan, way in ways.items():
            told = scan.name, way.value, way.cost
            log.info("Spark looks up the partitions of %s by %s: %s", *told)
        locations = {target.location for target in targets}
        lists = longest_list(descriptor.row_filters)
        begin_claimed(self._session, job, self._path, self._application_id)

        def report_of(text: str, objection: str | None, used: Descriptor | None) -> Report:
            """The report of a run of ``text``."""
            return replace(
                self._report(used or passed_through(job, objection or ""), path),
                ways={scan: way.value for scan, way in ways.items()} if used else {},
                eliminated=fewer_joins.scans if fewer_joins and text == fewer_joins.text else (),
            )

        def begins(found: Beginning, used: Descriptor | None) -> AbstractContextManager[None]:
            report = report_of(found.text, found.objection, used)
            return kept_for_retry(self._session, self._begins, report, found, job, self._path)

        with (
            self._clock.phase(MAP_JOIN, self._catalog.work),
            progress(self._session, MAP_JOIN),
            scanning(self._session, set(ways.values()), locations, lists),
        ):
            restricted = Restricted(
                descriptor.statement or job.statement,
                with_indexes_of(descriptor, current),
                targets,
                ways,
                fewer_joins.text if fewer_joins else None,
            )
            answer, used = run_restricted(self._session, job, restricted, begins)
        report = replace(
            report_of(answer.text, answer.objection, used),
            driver_peak_heap=best_effort(lambda: peak_heap(self._session)),
        )
        for scan in report.eliminated:
            log.info("the join with %s (%s) was removed: the keys decide it", scan.name, scan.table)
        return Result(report, answer.columns, answer.types, answer.rows, answer.text, answer.plan)

    def done(self, result: Result, digest: str) -> Outcome:
        """The outcome of a statement that has run; ``digest`` is its local task's."""
        return outcome_of(self._job, result, digest, self._path, self._catalog, self._clock)

    def _descriptor(
        self, metastore: PartitionsOf, hand_over: bool, budget: Budget
    ) -> tuple[Descriptor, Sequence[RedundantJoin], FoundKeys | None]:
        """The descriptor, the joins that the keys decide, and the keys for sensors."""
        job, catalog = self._job, self._catalog
        planned = plan_job(self._session, catalog, job, hand_over, budget)
        plan = planned.plan
        answered: Sequence[RedundantJoin] = ()
        keys = None
        if plan.passed_through:
            found = passed_through(job, plan.passed_through)
        else:
            metastore.prefetch(decision.table for decision in plan.decisions if decision.pruned)
            rest = self._key_sets, self._indexes, budget
            result = prune_scans(self._session, catalog, job, metastore, plan, hand_over, *rest)
            answered, keys = result.redundant, result.keys
            found = replace(result.descriptor, snapshots=planned.snapshots)
            if planned.names is not None:
                bound = binding(self._session, catalog, planned.names)
                found = replace(found, binding=bound)
        if job.gates.max_bytes is not None:
            found = replace(found, targets=tuple(map(catalog.with_bytes, found.targets)))
        statement = plan.sql if plan.sql != job.statement else None
        found = replace(found, query_digest=job.query_digest, statement=statement)
        return found, answered, keys if planned.is_users_own else None

    def _without_joins(
        self, descriptor: Descriptor, answered: Sequence[RedundantJoin]
    ) -> EliminatedJoins | None:
        if not answered:
            return None
        sql = descriptor.statement or self._job.statement
        ways = ways_of(descriptor.targets, self._catalog.is_on_glue)
        return without_joins(sql, self._catalog, descriptor, answered, ways)

    def _report(self, descriptor: Descriptor, path: StoragePath | None = None) -> Report:
        """The report with what the clock has measured so far."""
        return Report(
            descriptor,
            str(path or self._path),
            dict(self._clock.seconds),
            dict(self._clock.work),
            self._application_id,
        )
