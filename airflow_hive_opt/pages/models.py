"""The answers of the API, which the pages show. Numbers that are not known are ``None``."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from airflow_hive_opt.explain.stages import StageSummary

Trend = Literal["pruned", "worse", "nothing pruned"]
Whereabouts = Literal["there", "deleted", "unreadable", "outside"]


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


class Scan(BaseModel):
    """One scan of a partitioned table.

    ``reason`` is a code and ``sentence`` its meaning. ``kept`` and ``total`` are set for a scan
    that was pruned. ``files`` and ``total_files`` are set for a scan of a table that keeps its own
    list of files. ``path`` says how the partitions were found, ``way`` how Spark looked them up.
    ``columns`` are the restricted partition columns.
    """

    alias: str
    table: str
    reason: str
    sentence: str
    path: str | None = None
    kept: int | None = None
    total: int | None = None
    files: int | None = None
    total_files: int | None = None
    way: str | None = None
    columns: list[str] = []
    filter: str | None = None
    sources: list[Source] = []
    place: Place | None = None


class KeyPredicate(BaseModel):
    """Keys that became a condition on a data column; ``range`` if only their bounds did."""

    alias: str
    table: str
    column: str
    keys: int
    range: bool


class ReadOfTable(BaseModel):
    """What Spark's metrics say about a table; ``total_bytes`` is the size of the whole table."""

    table: str
    partitions: int | None = None
    files: int | None = None
    bytes: int | None = None
    total_bytes: int | None = None


class Stage(BaseModel):
    """A stage that Hive would run, the stages that it waits for, and the aliases of its scans."""

    id: str
    kind: str
    depends_on: list[str]
    scans: list[str]
    details: list[str]

    @classmethod
    def of(cls, stage: StageSummary) -> Stage:
        """The stage of a report."""
        return cls(
            id=stage.id,
            kind=stage.kind,
            depends_on=list(stage.depends_on),
            scans=list(stage.scans),
            details=list(stage.details),
        )


class Statement(BaseModel):
    """The user's text and the text that ran. ``cut`` says that Airflow keeps only the beginning."""

    user: str | None = None
    ran: str | None = None
    cut: bool = False


class Instance(BaseModel):
    """One task instance.

    ``descriptor`` is ``outside`` if the file with the partition lists is not in the folder that the
    API server may read. ``stages`` is empty if Hive's plan is not known.
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
    reason: str
    kept: int
    total: int
    scans: list[Scan]
    predicates: list[KeyPredicate]
    reads: list[ReadOfTable]
    phases: list[Phase]
    statement: Statement
    stages: list[Stage]
    eliminated: list[str]
    vanished: int
    appeared: int
    driver_peak_heap: int | None = None
    application_id: str | None = None
    spark_ui_url: str | None = None
    descriptor: Whereabouts


class Partition(BaseModel):
    """A partition that the run reads; a value of ``None`` is NULL."""

    values: list[str | None]
    name: str
    location: str | None = None
    rows: int | None = None
    bytes: int | None = None


class PartitionPage(BaseModel):
    """Some partitions of a scan: ``found`` match the search, of ``total`` in the scan's list."""

    alias: str
    table: str
    columns: list[str]
    found: int
    total: int
    partitions: list[Partition]


class Run(BaseModel):
    """One task instance in lists.

    ``seconds`` are by phase. ``change`` says how the reasons differ from those of the run before.
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
    change: str | None = None


class TaskHistory(BaseModel):
    """The runs of a task, newest first. ``more`` says that there are earlier ones."""

    dag_id: str
    task_id: str
    runs: list[Run]
    more: bool


class TaskSummary(BaseModel):
    """A task's last run and the sums of its runs.

    ``trend`` is ``worse`` if the last run reads a scan whole that an earlier run pruned.
    """

    dag_id: str
    task_id: str
    last: Run
    runs: int
    pruned_partitions: int
    pruned_bytes: int | None = None
    read_bytes: int | None = None
    trend: Trend


class Overview(BaseModel):
    """The tasks that ran in the last ``days`` days; those that read most come first."""

    days: int
    pruned_partitions: int
    pruned_bytes: int | None = None
    runs: int
    tasks: list[TaskSummary]
