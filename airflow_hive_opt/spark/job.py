"""One application's work as plain data: handed to a Spark in this process or on a cluster.

A job says what to do, an outcome how it went. Both are JSON, so that the driver may be anywhere
that reaches the storage they lie in; ``submitted`` is what runs there.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.planner.errors import PlanError
from airflow_hive_opt.runtime import descriptor as descriptors
from airflow_hive_opt.runtime.binding import OtherSession
from airflow_hive_opt.runtime.descriptor import DescriptorError, query_digest, write_whole
from airflow_hive_opt.runtime.gates import GateClosed, Gates, NothingToDo
from airflow_hive_opt.runtime.report import headline
from airflow_hive_opt.runtime.required import TooMuchToWaitFor, encode
from airflow_hive_opt.spark.application import (
    Request,
    join,
    keep_report,
    map_join,
    prune,
)
from airflow_hive_opt.spark.keys import MAX_KEY_BYTES, MAX_KEYS
from airflow_hive_opt.spark.refusals import is_refusal
from airflow_hive_opt.spark.required import required_partitions
from airflow_hive_opt.spark.session import own_session
from airflow_hive_opt.spark.words import in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.runtime.descriptor import StoragePath
    from airflow_hive_opt.runtime.report import Report

log = logging.getLogger(__name__)


class Stages(StrEnum):
    """Which of the two stages an application runs; or only what the local task begins with.

    :attr:`KEYS` writes down the partitions that the keys call for, there or not.
    """

    KEYS = "keys"
    LOCAL_TASK = "local task"
    MAP_JOIN = "map join"
    BOTH = "both"


@dataclass(frozen=True)
class Job:
    """A statement with its settings, and the stages to run.

    ``path`` is where this attempt writes: the descriptor if it runs the local task, the report
    beside it. ``descriptor`` and ``digest`` are the local task's announcement, for
    :attr:`Stages.MAP_JOIN` alone; ``columns`` bounds what :attr:`Stages.KEYS` asks for. ``sql`` may
    begin with ``SET`` lines.
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
    descriptor: str | None = None
    digest: str | None = None
    columns: tuple[str, ...] = ()

    def request(self) -> Request:
        """What the stages' functions take; raises ``ValueError``."""
        return Request.of(
            self.sql,
            self.hive_conf,
            parameters=self.parameters,
            max_keys=self.max_keys,
            max_key_bytes=self.max_key_bytes,
            show_rows=self.show_rows,
            **dataclasses.asdict(self.gates),
        )

    def to_json(self) -> str:
        """The job as JSON; raises ``ValueError`` for a parameter that JSON has no word for."""
        try:
            return json.dumps(dataclasses.asdict(self), indent=1)
        except TypeError as error:
            raise ValueError(
                f"parameters and hive_conf must be text, numbers or booleans: {error}"
            ) from error

    def query_digest(self) -> str:
        """The digest that this statement's descriptor must bear; raises ``ValueError``."""
        request = self.request()
        return query_digest(request.sql, request.parameters)

    @classmethod
    def from_json(cls, text: str | bytes) -> Job:
        """The job that :meth:`to_json` wrote."""
        document = json.loads(text)
        document["stages"] = Stages(document["stages"])
        document["gates"] = Gates(**document["gates"])
        document["columns"] = tuple(document["columns"])
        return cls(**document)


class Status(StrEnum):
    """How an application ended."""

    DONE = "done"
    NOTHING_TO_DO = "nothing to do"
    REFUSED = "refused"
    """Trying again gives the same: the statement is wrong, or a gate is closed."""
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """How a job went: for the log, for XCom and for the task's page.

    ``summary`` is there once the local task has run; ``statement`` is what Spark was given.
    """

    status: Status
    message: str
    summary: Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    statement: str | None = None

    def to_json(self) -> str:
        """The outcome as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Outcome:
        """The outcome that :meth:`to_json` wrote."""
        document = json.loads(text)
        document["status"] = Status(document["status"])
        document["columns"] = tuple(document["columns"])
        document["rows"] = tuple(map(tuple, document["rows"]))
        return cls(**document)


def run_job(
    session: SparkSession, job: Job, open_path: Callable[[str], StoragePath] = UPath
) -> Outcome:
    """Runs the job's stages; what goes wrong is in the outcome, in words.

    ``open_path`` gives the place that a URI stands for.
    """
    pruned: Report | None = None
    try:
        request, path = job.request(), open_path(job.path)
    except (ValueError, ImportError) as error:
        return _stopped(Status.REFUSED, error, None)
    session = own_session(session)
    try:
        if job.stages is Stages.MAP_JOIN:
            descriptor = open_path(job.descriptor or "")
            result = map_join(session, request, descriptor, job.digest or "")
            report = _in_effect(result.report, job.digest, path)
            keep_report(report, path)
        else:
            if job.stages is Stages.KEYS:
                return _call_for(session, request, path, job.columns)
            pruned = prune(session, request, path, hand_over=job.stages is Stages.LOCAL_TASK)
            if job.stages is Stages.LOCAL_TASK:
                request.gates.check(pruned.descriptor)
                keep_report(pruned, path)
                return Outcome(Status.DONE, headline(pruned.descriptor), pruned.summary())
            result = join(session, request, pruned, path)
            report = _in_effect(result.report, pruned.descriptor.digest, path)
    except NothingToDo as nothing:
        return _stopped(Status.NOTHING_TO_DO, nothing, pruned)
    except (PlanError, GateClosed, OtherSession, TooMuchToWaitFor) as error:
        return _stopped(Status.REFUSED, error, pruned)
    except (DescriptorError, PySparkException, Py4JError) as error:
        status = Status.REFUSED if is_refusal(error) else Status.FAILED
        return _stopped(status, error, pruned)
    return Outcome(
        Status.DONE,
        headline(report.descriptor),
        report.summary(),
        result.columns,
        tuple(tuple(map(_text, row)) for row in result.rows),
        result.statement,
    )


def write_job(job: Job, path: StoragePath) -> StoragePath:
    """Writes the job beside ``path`` for a submitted application; returns where.

    Raises ``ValueError`` and ``DescriptorError``.
    """
    at = path.with_name(f"{path.stem}.job.json")
    write_whole(job.to_json().encode(), at)
    return at


def write_outcome(outcome: Outcome, path: StoragePath) -> None:
    """Leaves the outcome beside ``path`` for the task that waits for it."""
    write_whole(outcome.to_json().encode(), outcome_path(path))


def outcome_path(path: StoragePath) -> StoragePath:
    """Where a submitted application leaves its outcome."""
    return path.with_name(f"{path.stem}.outcome.json")


def _in_effect(report: Report, announced: str | None, path: StoragePath) -> Report:
    """The report of a run that left its list aside, with the descriptor that says so at ``path``.

    Whatever follows the report's URI must not find a list that was not followed. The statement has
    run: failing now would run it again on a retry.
    """
    if report.descriptor.digest == announced:
        return report
    try:
        descriptors.write(report.descriptor, path)
    except DescriptorError as error:
        log.warning("the descriptor still has the list that was left aside: %s", error)
    return dataclasses.replace(report, uri=str(path))


def _call_for(
    session: SparkSession, request: Request, path: StoragePath, columns: Sequence[str]
) -> Outcome:
    found = required_partitions(session, request, columns)
    write_whole(encode(found), path)
    count = sum(len(required.tuples) for required in found)
    tables = ", ".join(required.table for required in found) or "no table"
    message = f"the keys call for {count:,} partitions of {tables}"
    return Outcome(Status.DONE, message, {"uri": str(path), "required": count})


def _stopped(status: Status, error: Exception, pruned: Report | None) -> Outcome:
    raised = error.java_exception if isinstance(error, Py4JJavaError) else error
    message = in_words(raised)
    return Outcome(status, message, pruned.summary() if pruned else None)


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)
