"""One application's work as plain data, for Spark in this process or on a cluster.

A ``Job`` says what to do and an ``Outcome`` how it ended. Both are JSON documents in storage, so
the driver may run on any machine that can access the storage. ``submitted`` runs there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional

from airflow_hive_opt.documents.descriptor import DescriptorError, query_digest
from airflow_hive_opt.documents.format import Format, RefusedDocument
from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.documents.index_trial import IndexTrial
from airflow_hive_opt.documents.storage import NothingThereError
from airflow_hive_opt.statement.arguments import (
    check_named_values,
    check_parameters,
    check_whole_number,
)
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import Settings
from airflow_hive_opt.statement.text_enum import StrEnum

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath

MAX_KEYS = 100_000
MAX_KEY_BYTES = 16 << 20


@dataclass(frozen=True)
class KeyBounds:
    """The limits on the keys of one small table.

    The maximum number of distinct keys, their maximum total bytes, and whether they may depend on
    Python functions.
    """

    max_keys: int = MAX_KEYS
    max_key_bytes: int = MAX_KEY_BYTES
    python_functions: bool = False


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
    """A statement with its settings and limits, and the stages to run.

    - ``sql`` may begin with ``SET`` lines. They apply to Spark's session. The planner reads Hive's
      settings among them too; they take precedence over ``switches``, and these over ``hive_conf``.
    - ``path`` is the URI that this attempt writes to: the descriptor, or the partitions of
      :attr:`Stages.KEYS`. Report and outcome go next to it.
    - ``descriptor`` and ``digest`` are the result of a local task that has run elsewhere: in
      another task, or in the worker.
    - ``switches`` are those of :class:`~airflow_hive_opt.statement.switches.Switches` that were
      given, by name.
    - ``max_keys`` and ``max_key_bytes`` limit the number and the total bytes of one small table's
      keys.
    - ``show_rows`` is how many rows of a SELECT the run returns; with 0 Spark only plans a SELECT.
    - ``hold_snapshots`` says that the statement reads small Iceberg and Delta tables at the
      snapshots from which their keys come.
    - ``skipped_keys`` are keys that the last run of this task found not worth reading, and
      ``skipped_indexes`` are tables that it could not change by a key index; see
      :class:`~airflow_hive_opt.local_task.earlier_runs.EarlierRuns`. ``index_trial`` says
      how this run goes, by the times of the task's last runs.
    - ``key_sets`` is the URI of the folder of the key set that this statement shares with others;
      empty for none.
    - ``index_path`` is the URI of the folder of the key indexes; empty for none.
    - ``columns`` limits the partition columns of :attr:`Stages.KEYS`.
    - ``token`` marks the job's outcome and the list that :attr:`Stages.KEYS` writes. Readers
      reject documents with another token.

    Raises ``ValueError`` for invalid values.
    """

    sql: str
    path: str = ""
    stages: Stages = Stages.BOTH
    parameters: Mapping[str, Any] = field(default_factory=dict)
    hive_conf: Mapping[str, Any] = field(default_factory=dict)
    switches: Mapping[str, Any] = field(default_factory=dict)
    max_keys: int = MAX_KEYS
    max_key_bytes: int = MAX_KEY_BYTES
    show_rows: int = 20
    gates: Gates = field(default_factory=Gates)
    hold_snapshots: bool = False
    skipped_keys: Mapping[str, int] = field(default_factory=dict)
    skipped_indexes: Mapping[str, int] = field(default_factory=dict)
    index_trial: IndexTrial = field(default_factory=IndexTrial)
    descriptor: Optional[str] = None
    digest: Optional[str] = None
    key_sets: str = ""
    index_path: str = ""
    columns: tuple[str, ...] = ()
    token: str = ""

    def __post_init__(self) -> None:
        """Checks statement, parameters, settings and limits."""
        if not isinstance(self.sql, str) or not self.statement.strip():
            raise ValueError(f"sql must be a statement, not {self.sql!r}")
        check_parameters(self.parameters)
        check_named_values("hive_conf", self.hive_conf)
        check_whole_number("max_keys", self.max_keys, 1)
        check_whole_number("max_key_bytes", self.max_key_bytes, 1)
        check_whole_number("show_rows", self.show_rows)
        _ = self.settings

    @cached_property
    def _script(self) -> tuple[dict[str, str], str]:
        return split_settings(self.sql)

    @property
    def statement(self) -> str:
        """The statement, without the ``SET`` lines."""
        return self._script[1]

    @property
    def session_conf(self) -> Mapping[str, str]:
        """The ``SET`` lines' settings by name."""
        return self._script[0]

    @cached_property
    def settings(self) -> Settings:
        """The planner's settings."""
        own = self.session_conf.items()
        for_hive = {name: value for name, value in own if not name.startswith("spark.")}
        return Settings.for_run(self.hive_conf, self.switches, for_hive)

    @property
    def bounds(self) -> KeyBounds:
        """The limits on the keys of one small table."""
        allowed = self.settings.switches.python_functions
        return KeyBounds(self.max_keys, self.max_key_bytes, allowed)

    @property
    def query_digest(self) -> str:
        """The digest that this statement's descriptor must have."""
        return query_digest(self.statement, self.parameters)

    def digest_of_work(self) -> str:
        """SHA-256 of the work, without fields that differ between the attempts of a task.

        Raises ``ValueError`` for a parameter that JSON can't represent.
        """
        try:
            return _JOB.digest(self._of_every_attempt)
        except DescriptorError as error:
            raise ValueError(
                f"parameters and hive_conf must be text, numbers or booleans: {error}"
            ) from error

    def digest_with(self, conf: Mapping[str, str]) -> str:
        """Like :meth:`digest_of_work`, in a session with the settings, for parameters of any type.

        >>> from datetime import date
        >>> days = [Job("SELECT :day", parameters={"day": date(2026, 1, day)}) for day in (1, 1, 2)]
        >>> len({job.digest_with({}) for job in days}), len({days[0].digest_with({"a": "b"})})
        (2, 1)
        """
        work = repr((self._of_every_attempt, sorted(conf.items())))
        return hashlib.sha256(work.encode()).hexdigest()

    @property
    def _of_every_attempt(self) -> Job:
        """The job without fields that differ between the attempts of a task."""
        same = replace(self, path="", token="", index_path="")
        same = replace(same, skipped_keys={}, skipped_indexes={}, index_trial=IndexTrial())
        if self.stages is Stages.BOTH:  # each attempt's worker writes its own descriptor
            same = replace(same, descriptor=None, digest=None)
        return same


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
    ``token`` is the job's token. ``may_have_written`` says of one that has failed that its error
    may have come after the statement's commit.
    """

    status: Status
    message: str
    summary: Optional[Mapping[str, Any]] = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    statement: Optional[str] = None
    token: str = ""
    may_have_written: bool = False


_JOB = Format("job", 9, Job)
_OUTCOME = Format("outcome", 2, Outcome)


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
    """Writes the outcome next to ``path`` for the task that waits for it, and for its retries.

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
    """The outcome that the job with this token wrote for ``path``.

    Raises ``RefusedDocument`` for another job's, and ``DescriptorError``.
    """
    at = outcome_path(path)
    outcome = _OUTCOME.read(at)
    if not token or outcome.token != token:
        raise RefusedDocument(f"the outcome {at} is refused: it belongs to another application")
    return outcome


NO_OUTCOME = (NothingThereError, RefusedDocument)
"""The errors that say that a job has written no outcome. Others are of the storage."""


def outcome_if_any(path: StoragePath, token: str) -> Outcome | None:
    """The outcome that the job with this token wrote for ``path``, if there is one.

    Raises ``DescriptorError`` if the storage can't be read.
    """
    try:
        return read_outcome(path, token)
    except NO_OUTCOME:
        return None


def outcome_path(path: StoragePath) -> StoragePath:
    """The path of the outcome of the attempt that writes to ``path``."""
    return path.with_name(f"{path.stem}.outcome.json")
