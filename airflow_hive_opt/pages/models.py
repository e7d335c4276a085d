"""The answers of the API, which the pages show. Numbers that are not known are ``None``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from airflow_hive_opt.documents.report import StageSummary

Trend = Literal["pruned", "worse", "nothing pruned"]
Whereabouts = Literal["there", "deleted", "elsewhere", "unreadable", "outside"]


class Work(BaseModel):
    """The calls of one phase."""

    metastore_calls: int
    partitions_fetched: int
    files_listed: int


class Phase(BaseModel):
    """A phase of a run: ``local task``, ``prelaunch`` or ``map join``.

    ``work`` is not counted over Spark Connect and in a Spark that tasks share.
    """

    name: str
    seconds: float
    work: Work | None = None


class Source(BaseModel):
    """A small table with its key query. ``keys`` is ``None`` before they are read."""

    name: str
    aliases: list[str]
    sql: str
    keys: int | None = None


class Place(BaseModel):
    """Characters ``start`` to ``stop`` of the user's statement; lines and columns count from 1."""

    start: int
    stop: int
    line: int
    column: int


class Hop(BaseModel):
    """Keys of other large tables, ``source`` by name. ``seconds`` is the time of their query.

    The scan reads ``files`` because of the keys, and ``files_without`` otherwise.
    """

    source: str
    keys: int | None = None
    seconds: float | None = None
    files: int | None = None
    files_without: int | None = None


class IndexUse(BaseModel):
    """What the run did with the key index of a scan's ``column``; ``sentence`` explains ``code``.

    ``files`` of ``total_files`` data files hold the keys, or are among the ``unknown`` ones.
    ``hop`` is set if the keys came from other large tables.
    """

    column: str
    code: str
    sentence: str
    why: str = ""
    files: int | None = None
    unknown: int | None = None
    total_files: int | None = None
    hop: Hop | None = None


class Scan(BaseModel):
    """One scan of a partitioned table.

    ``scan`` is its name for people, which no other scan of the statement has. ``reference`` is the
    position of the table's name in the statement that ran, start and stop. ``reason`` is a code,
    ``sentence`` its meaning and ``advice`` what to do about it. ``kept`` and ``total`` are set for
    a scan that was pruned. ``files`` and ``total_files`` are set for a scan of a table that keeps
    its own list of files. ``path`` says how the partitions were found, ``way`` how Spark looked
    them up. ``columns`` are the restricted partition columns.
    """

    scan: str
    alias: str
    table: str
    reference: tuple[int, int] | None = None
    reason: str
    sentence: str
    advice: str | None = None
    path: str | None = None
    kept: int | None = None
    total: int | None = None
    files: int | None = None
    total_files: int | None = None
    way: str | None = None
    columns: list[str] = []
    filter: str | None = None
    sources: list[Source] = []
    indexes: list[IndexUse] = []
    place: Place | None = None


class KeyPredicate(BaseModel):
    """Keys as a condition on a data column; with ``range``, only the lowest and the highest."""

    scan: str
    alias: str
    table: str
    column: str
    keys: int
    range: bool


class EliminatedJoin(BaseModel):
    """A small table that was left out with its join; ``scan`` is its name for people."""

    scan: str
    table: str


class IndexTrial(BaseModel):
    """The seconds of the task's last runs: with key indexes, without, and as the statement is."""

    used: float | None = None
    left_out: float | None = None
    untouched: float | None = None


class ReadOfTable(BaseModel):
    """What Spark's metrics say about a table; ``total_bytes`` is the size of the whole table."""

    table: str
    partitions: int | None = None
    files: int | None = None
    bytes: int | None = None
    total_bytes: int | None = None


class Stage(BaseModel):
    """A stage that Hive would run, and the stages that it waits for.

    ``scans`` has the numbers of its scans in the list of the instance, from 0.
    """

    id: str
    kind: str
    depends_on: list[str]
    scans: list[int]
    details: list[str]

    @classmethod
    def of(cls, stage: StageSummary, starts: Sequence[int | None]) -> Stage:
        """The stage of a report; ``starts`` are the positions of the instance's scans."""
        return cls(
            id=stage.id,
            kind=stage.kind,
            depends_on=list(stage.depends_on),
            scans=[number for number, start in enumerate(starts) if start in stage.scans],
            details=list(stage.details),
        )


class Statement(BaseModel):
    """The user's text and the text that ran. ``cut`` says that Airflow keeps only the beginning."""

    user: str | None = None
    ran: str | None = None
    cut: bool = False


class Note(BaseModel):
    """Why there is nothing to show of a task instance."""

    note: str


class Instance(BaseModel):
    """One task instance.

    ``stopped`` says why a gate ended the run before its join. ``descriptor`` says where the file
    with the partition lists is, and ``descriptor_note`` why the API server can't read it.
    ``stages`` is empty if Hive's plan is not known.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int | None = None
    state: str | None = None
    logical_date: datetime | None = None
    start_date: datetime | None = None
    duration: float | None = None
    headline: str
    stopped: str | None = None
    reason: str
    kept: int
    total: int
    scans: list[Scan]
    predicates: list[KeyPredicate]
    reads: list[ReadOfTable]
    phases: list[Phase]
    statement: Statement
    stages: list[Stage]
    eliminated: list[EliminatedJoin]
    vanished: int
    appeared: int
    index_trial: IndexTrial | None = None
    driver_peak_heap: int | None = None
    application_id: str | None = None
    spark_ui_url: str | None = None
    descriptor: Whereabouts
    descriptor_note: str = ""


class Partition(BaseModel):
    """A partition that the run reads; a value of ``None`` is NULL."""

    values: list[str | None]
    name: str
    location: str | None = None
    rows: int | None = None
    bytes: int | None = None


class PartitionPage(BaseModel):
    """Some partitions of a scan: ``found`` match the search, of ``total`` in the scan's list.

    ``scan``, ``table`` and ``reference`` are those of :class:`Scan`.
    """

    scan: str
    table: str
    reference: tuple[int, int] | None
    columns: list[str]
    found: int
    total: int
    partitions: list[Partition]


class Run(BaseModel):
    """One task instance in lists.

    ``seconds`` are by phase. ``estimated`` says that ``pruned_bytes`` is an estimate. ``stopped``
    says why a gate ended the run before its join. ``change`` says how the reasons differ from those
    of the run before.
    """

    run_id: str
    map_index: int
    try_number: int | None = None
    state: str | None = None
    logical_date: datetime | None = None
    run_after: datetime
    start_date: datetime | None = None
    reason: str
    kept: int
    total: int
    seconds: dict[str, float]
    read_bytes: int | None = None
    pruned_bytes: int | None = None
    estimated: bool = False
    stopped: str | None = None
    change: str | None = None


class TaskHistory(BaseModel):
    """The runs of a task, newest first.

    ``more`` says that there are earlier ones, and ``note`` why there are none at all.
    """

    dag_id: str
    task_id: str
    runs: list[Run]
    more: bool
    note: str | None = None


class TaskSummary(BaseModel):
    """A task's last run and the sums of its runs.

    ``group`` is the task group whose two tasks are one row; ``task_id`` is then the one that ran
    last. ``estimated`` says that ``pruned_bytes`` is an estimate. ``trend`` is ``worse`` if the
    last run does not prune a scan that an earlier run pruned.
    """

    dag_id: str
    task_id: str
    group: str | None = None
    last: Run
    runs: int
    pruned_partitions: int
    pruned_bytes: int | None = None
    estimated: bool = False
    read_bytes: int | None = None
    trend: Trend


class ReasonCode(BaseModel):
    """A reason code with its meaning, and what to do about it."""

    code: str
    sentence: str
    advice: str | None = None


class Overview(BaseModel):
    """The tasks that started in the last ``days`` days; those that read most come first."""

    days: int
    pruned_partitions: int
    pruned_bytes: int | None = None
    estimated: bool = False
    runs: int
    tasks: list[TaskSummary]
