"""One application's work as plain data, for Spark in this process or on a cluster.

A ``Job`` says what to do and an ``Outcome`` how it ended. Both are JSON documents in storage, so
the driver may run on any machine that can access the storage. ``submitted`` runs there.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Optional

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.binding import OtherSession
from airflow_hive_opt.documents.descriptor import DescriptorError, query_digest
from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.gates import Gates, JoinStopped, NothingToDo
from airflow_hive_opt.documents.report import Report, headline, keep_report
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.metastores.required import TooManyRequiredPartitions
from airflow_hive_opt.spark.application.application import join, map_join, prune
from airflow_hive_opt.spark.application.completion import completed
from airflow_hive_opt.spark.application.request import Request, Result
from airflow_hive_opt.spark.application.required_partitions import required_partitions
from airflow_hive_opt.spark.catalog.connect_catalog import catalog_of
from airflow_hive_opt.spark.keys.key_set import MAX_KEY_BYTES, MAX_KEYS
from airflow_hive_opt.spark.session.error_text import in_words
from airflow_hive_opt.spark.session.session import own_session
from airflow_hive_opt.spark.session.statement_errors import is_refusal
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.text_enum import StrEnum

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.descriptor import StoragePath

log = logging.getLogger(__name__)


class Stages(StrEnum):
    """Which stages an application runs.

    :attr:`KEYS` runs only the beginning of the local task: it writes the partitions that the keys
    require, whether they exist or not.
    """

    KEYS = "keys"
    LOCAL_TASK = "local task"
    MAP_JOIN = "map join"
    BOTH = "both"


@dataclass(frozen=True)
class Job:
    """A statement with its settings, and the stages to run.

    - ``sql`` may begin with ``SET`` lines.
    - ``path`` is the URI that this attempt writes to: the descriptor, or the partitions of
      :attr:`Stages.KEYS`. Report and outcome go next to it.
    - ``descriptor`` and ``digest`` are the local task's result, for :attr:`Stages.MAP_JOIN` only.
    - ``hold_snapshots`` is that of
      :class:`~airflow_hive_opt.spark.application.request.Request`.
    - ``unasked`` is what the last run of this task found out; see
      :class:`~airflow_hive_opt.spark.local_task.earlier_runs.EarlierRuns`.
    - ``columns`` limits the partition columns of :attr:`Stages.KEYS`.
    - ``token`` marks the job's outcome and the list that :attr:`Stages.KEYS` writes. Readers
      reject documents with another token.
    """

    sql: str
    path: str
    stages: Stages
    parameters: Mapping[str, Any] = field(default_factory=dict)
    hive_conf: Mapping[str, Any] = field(default_factory=dict)
    max_keys: int = MAX_KEYS
    max_key_bytes: int = MAX_KEY_BYTES
    show_rows: int = 20
    gates: Gates = field(default_factory=Gates)
    hold_snapshots: bool = False
    unasked: Mapping[str, int] = field(default_factory=dict)
    descriptor: Optional[str] = None
    digest: Optional[str] = None
    columns: tuple[str, ...] = ()
    token: str = ""

    def request(self) -> Request:
        """The request for the stages' functions; raises ``ValueError``."""
        return Request.of(
            self.sql,
            self.hive_conf,
            parameters=self.parameters,
            max_keys=self.max_keys,
            max_key_bytes=self.max_key_bytes,
            hold_snapshots=self.hold_snapshots,
            unasked=self.unasked,
            show_rows=self.show_rows,
            **dataclasses.asdict(self.gates),
        )

    def digest_of_work(self) -> str:
        """SHA-256 of the work; ``path``, ``token`` and ``unasked`` do not count.

        Raises ``ValueError`` for a parameter that JSON can't represent.
        """
        try:
            return _JOB.digest(dataclasses.replace(self, path="", token="", unasked={}))
        except DescriptorError as error:
            raise ValueError(
                f"parameters and hive_conf must be text, numbers or booleans: {error}"
            ) from error

    def query_digest(self) -> str:
        """The digest that this statement's descriptor must have; raises ``ValueError``."""
        request = self.request()
        return query_digest(request.sql, request.parameters)


class Status(StrEnum):
    """How an application ended."""

    DONE = "done"
    NOTHING_TO_DO = "nothing to do"
    REFUSED = "refused"
    """A retry gives the same result: the statement is wrong, or a gate is closed."""
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """How a job ended: for the log, for XCom and for the task's page.

    ``summary`` is ``None`` until the local task has run. ``statement`` is the text that Spark ran.
    ``token`` is the job's token.
    """

    status: Status
    message: str
    summary: Optional[Mapping[str, Any]] = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    statement: Optional[str] = None
    token: str = ""


_JOB = Format("job", 3, Job)
_OUTCOME = Format("outcome", 1, Outcome)


def run_job(
    session: SparkSession, job: Job, open_path: Callable[[str], StoragePath] = UPath
) -> Outcome:
    """Runs the job's stages and returns how they ended; the outcome holds an error's message.

    ``open_path`` makes a path from a URI.
    """
    outcome = _run(session, job, open_path)
    return dataclasses.replace(outcome, token=job.token)


def _run(session: SparkSession, job: Job, open_path: Callable[[str], StoragePath]) -> Outcome:
    pruned: Report | None = None
    try:
        request, path = job.request(), open_path(job.path)
        descriptor = open_path(job.descriptor or job.path)
    except (ValueError, ImportError) as error:
        return _stopped(Status.REFUSED, error, None)
    try:
        session = own_session(session)
        if job.stages is Stages.KEYS:
            return _call_for(session, job, request, path)
        catalog = catalog_of(session)
        if job.stages is Stages.MAP_JOIN:
            result = map_join(session, request, descriptor, job.digest or "")
            announced = job.digest
        else:
            local_task_only = job.stages is Stages.LOCAL_TASK
            pruned = prune(session, request, path, hand_over=local_task_only, catalog=catalog)
            if local_task_only:
                keep_report(pruned, path)
                request.gates.check(pruned.descriptor)
                return Outcome(Status.DONE, headline(pruned.descriptor), pruned.summary())
            result = join(session, request, pruned, path)
            announced = pruned.descriptor.digest
    except JoinStopped as stop:
        return _before_the_join(stop, pruned or Report(stop.descriptor, str(descriptor)), job)
    except (PlanError, OtherSession, TooManyRequiredPartitions) as error:
        return _stopped(Status.REFUSED, error, pruned)
    except (DescriptorError, PySparkException, Py4JError, ConnectionError) as error:
        status = Status.REFUSED if is_refusal(error) else Status.FAILED
        return _stopped(status, error, pruned)
    report = completed(request, result, catalog)
    return _done(replace(result, report=report), announced, path)


def _done(result: Result, announced: str | None, path: StoragePath) -> Outcome:
    """The outcome of a statement that has run: no error from here on may cause a retry."""
    report = _in_effect(result.report, announced, path)
    keep_report(report, path)
    return Outcome(
        Status.DONE,
        headline(report.descriptor),
        report.summary(),
        result.columns,
        tuple(tuple(map(_text, row)) for row in result.rows),
        result.statement,
    )


def write_job(job: Job, path: StoragePath) -> StoragePath:
    """Writes the job next to ``path`` for a submitted application; returns the job's path.

    Raises ``DescriptorError``.
    """
    at = path.with_name(f"{path.stem}.job.json")
    _JOB.write(job, at)
    return at


def read_job(at: StoragePath) -> Job:
    """The job that :func:`write_job` wrote; raises ``DescriptorError``."""
    return _JOB.read(at)


def write_outcome(outcome: Outcome, path: StoragePath) -> None:
    """Writes the outcome next to ``path`` for the task that waits for it.

    Leaves out the result rows if the document is too large: the statement has run and must not
    fail. Raises ``DescriptorError``.
    """
    try:
        _OUTCOME.write(outcome, outcome_path(path))
    except DescriptorError:
        if not outcome.rows:
            raise
        _OUTCOME.write(replace(outcome, rows=()), outcome_path(path))


def read_outcome(path: StoragePath, token: str) -> Outcome:
    """The outcome that the job with this token wrote for ``path``; raises ``DescriptorError``."""
    at = outcome_path(path)
    outcome = _OUTCOME.read(at)
    if not token or outcome.token != token:
        raise DescriptorError(f"the outcome {at} is refused: it belongs to another application")
    return outcome


def outcome_path(path: StoragePath) -> StoragePath:
    """The path of a submitted application's outcome."""
    return path.with_name(f"{path.stem}.outcome.json")


def _in_effect(report: Report, announced: str | None, path: StoragePath) -> Report:
    """The report of a run; its descriptor says what the run did.

    If Spark rejected the pruned statement, this function writes a descriptor without a partition
    list to ``path``: a reader of the report's URI must not find a list that was not used.
    """
    if report.descriptor.digest == announced:
        return report
    try:
        descriptors.write(report.descriptor, path)
    except Exception as error:  # noqa: BLE001 - whatever it is
        log.warning("the descriptor still contains the partition list that was not used: %s", error)
    return dataclasses.replace(report, uri=str(path))


def _call_for(session: SparkSession, job: Job, request: Request, path: StoragePath) -> Outcome:
    found = tuple(required_partitions(session, request, job.columns))
    digest = query_digest(request.sql, request.parameters)
    called_for = RequiredPartitions(digest, job.columns, job.token, found)
    required.write(called_for, path)
    summary = {"uri": str(path), "required": called_for.count}
    return Outcome(Status.DONE, called_for.in_words, summary)


def _stopped(status: Status, error: Exception, pruned: Report | None) -> Outcome:
    message = in_words(error)
    return Outcome(status, message, pruned.summary() if pruned else None)


def _before_the_join(stop: JoinStopped, report: Report, job: Job) -> Outcome:
    """The outcome of a run that a gate has stopped, with all that the local task found."""
    status = Status.NOTHING_TO_DO if isinstance(stop, NothingToDo) else Status.REFUSED
    found = {"stopped": stop.short, "headline": headline(stop.descriptor)}
    if job.digest:
        found["digest"] = job.digest  # of the list as the local task wrote it
    return Outcome(status, str(stop), {**report.summary(), **found})


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)
