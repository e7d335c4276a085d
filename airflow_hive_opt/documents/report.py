"""The report of a run, for logs and for XCom."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_hive_opt.documents.binding import SPARK
from airflow_hive_opt.documents.descriptor import (
    Decision,
    Descriptor,
    PlannedFiles,
    RowFilter,
    Target,
)
from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.indexed_scans import by_hop, by_index, followed, uses_for_xcom
from airflow_hive_opt.documents.log_text import counted as counted
from airflow_hive_opt.documents.log_text import files_in_words as files_in_words
from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.storage import StoragePath
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.zip_strict import zip_strict

log = logging.getLogger(__name__)
NO_PARTITIONED_TABLE = "NO_PARTITIONED_TABLE"
"""In place of a run's reason code if its statement reads no partitioned table."""
_PRUNED = "PRUNED"
_BY_CONDITION = ("RESTRICTED", "OWN_CONDITION")

LOCAL_TASK, PRELAUNCH, MAP_JOIN, REPORT = PHASES = ("local task", "prelaunch", "map join", "report")
"""The phases of a run in their order. ``report`` is what follows the statement: its table look-ups
are for the report alone."""


@dataclass(frozen=True)
class StageSummary:
    """A stage, the stages that it waits for, its scans, and its joins in words.

    ``scans`` are the positions at which the statement names the tables that the stage reads.
    """

    id: str
    kind: str
    depends_on: tuple[str, ...]
    scans: tuple[int, ...]
    details: tuple[str, ...]


@dataclass(frozen=True)
class TableRead:
    """What Spark read of a table in all scans, and its size; ``None`` if it is not known."""

    table: str
    partitions: int | None
    files: int | None
    bytes: int | None
    total_bytes: int | None


@dataclass(frozen=True)
class EliminatedJoins:
    """The pruned statement without some joins, and the scans of these joins' small tables."""

    text: str
    scans: tuple[ScanRef, ...]


@dataclass(frozen=True)
class Report:
    """The report of one run.

    - ``uri`` is the location of the descriptor.
    - ``seconds`` are durations by phase.
    - ``work`` is by stage; it is ``None`` for a stage whose work is not counted.
    - ``vanished`` and ``appeared`` are the numbers of partitions that were removed and added
      between the stages.
    - ``ways`` says for each pruned scan how Spark found the partitions: ``filter``, ``names``,
      ``range`` or ``whole``.
    - ``driver_peak_heap`` is the peak heap of the driver's JVM since its start, in bytes.
    - ``eliminated`` are the scans of small tables that were left out with their join.
    - ``reads`` is what Spark read; empty if it is not known.
    - ``stages`` are the stages that Hive would run; empty if Hive rejects the statement, or if the
      run leaves it to Spark to compare. They are in the file only.
    - ``fewer_joins`` is the statement with fewer joins, for the map join of the same application.
    - ``index_trial`` is what the task's next run must know of the times of its runs.
    - ``local_task`` says what has read the keys: ``spark``, or ``worker`` for the task's process.
    """

    descriptor: Descriptor
    uri: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    work: Mapping[str, Work | None] = field(default_factory=dict)
    application_id: str | None = None
    vanished: int = 0
    appeared: int = 0
    ways: Mapping[ScanRef, str] = field(default_factory=dict)
    driver_peak_heap: int | None = None
    eliminated: tuple[ScanRef, ...] = ()
    reads: tuple[TableRead, ...] = ()
    stages: tuple[StageSummary, ...] = ()
    fewer_joins: EliminatedJoins | None = None
    index_trial: Mapping[str, Any] = field(default_factory=dict)
    local_task: str = SPARK

    def summary(self) -> dict[str, object]:
        """The summary for XCom, a small dictionary of plain values."""
        return {
            **descriptor_summary(self.descriptor, self.uri, self.ways, self.seconds),
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "work": {
                name: None if work is None else asdict(work) for name, work in self.work.items()
            },
            "local_task": self.local_task,
            "application_id": self.application_id,
            "vanished": self.vanished,
            "appeared": self.appeared,
            "driver_peak_heap": self.driver_peak_heap,
            "eliminated": [scan.to_json() for scan in self.eliminated],
            "reads": [asdict(read) for read in self.reads],
            "index_trial": dict(self.index_trial),
        }


@dataclass(frozen=True)
class StoredReport:
    """The content of a report's file: the summary as in XCom, and Hive's stages."""

    summary: Mapping[str, Any]
    stages: tuple[StageSummary, ...] = ()


_FORMAT = Format("report", 3, StoredReport)
read_report = _FORMAT.read


def keep_report(report: Report, path: StoragePath) -> None:
    """Writes the report's summary to a file next to ``path``.

    A failure is only logged: the statement has already run, and an error would make a retry run it
    again.
    """
    try:
        _FORMAT.write(StoredReport(report.summary(), report.stages), report_path(path))
    except Exception as error:  # noqa: BLE001 - whatever it is
        log.warning("the report can't be stored: %s", error)


def report_path(path: StoragePath) -> StoragePath:
    """The path of the report of the attempt whose descriptor is at ``path``."""
    return path.with_name(f"{path.stem}.report.json")


def changes(before: Sequence[Target], after: Sequence[Target]) -> tuple[int, int]:
    """The numbers of partitions that were removed and added, summed over the targets."""
    vanished = appeared = 0
    now = {target.scan: {part.values for part in target.partitions} for target in after}
    for target in before:
        values = {part.values for part in target.partitions}
        new_values = now.get(target.scan, values)
        vanished += len(values - new_values)
        appeared += len(new_values - values)
    return vanished, appeared


def descriptor_summary(
    descriptor: Descriptor,
    uri: str,
    ways: Mapping[ScanRef, str] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> dict[str, object]:
    """``{uri, digest, query_digest, kept, total, reason}`` and the decision for each scan.

    ``ways`` and ``seconds`` are those of :class:`Report`.
    """
    took = (seconds or {}).get(MAP_JOIN)
    return {
        "uri": uri,
        "digest": descriptor.digest,
        "query_digest": descriptor.query_digest,
        "kept": descriptor.kept,
        "total": descriptor.total,
        "reason": reason(descriptor),
        "decisions": [
            {**found.scan.to_json(), "reason": found.reason}
            | _found(on)
            | ({"way": ways[found.scan]} if ways and found.scan in ways else {})
            | ({"skipped_keys": asdict(found.skipped_keys)} if found.skipped_keys else {})
            | (
                {"indexes": uses}
                if (uses := uses_for_xcom(descriptor.index_uses, found.scan, took))
                else {}
            )
            for found, on in scans(descriptor)
        ],
        "snapshots": [asdict(found) for found in descriptor.snapshots],
        "key_sets": [
            {"source": use.source, "code": use.code, "why": use.why} for use in descriptor.key_sets
        ],
        "predicates": [
            {**found.scan.to_json(), "column": found.column}
            | {"keys": found.source.keys, "range": found.is_range}
            for found in descriptor.row_filters
        ],
    }


def scans(descriptor: Descriptor) -> Iterator[tuple[Decision, Target | PlannedFiles | None]]:
    """Every decision with the partitions or the files that were found for its scan."""
    both: Sequence[Target | PlannedFiles] = (*descriptor.targets, *descriptor.planned_files)
    found = {each.scan: each for each in both}
    return ((decision, found.get(decision.scan)) for decision in descriptor.decisions)


def _found(on: Target | PlannedFiles | None) -> dict[str, object]:
    if isinstance(on, Target):
        return {"path": on.path, "kept": on.kept, "total": on.total}
    names = ("partitions", "files", "bytes", "total_files", "total_bytes") if on else ()
    return {name: getattr(on, name) for name in names}


def decision_lines(decisions: Sequence[Mapping[str, Any]]) -> list[str]:
    r"""A summary's decisions as a table for the log: scan, table, partitions to read, decision.

    >>> print(*decision_lines([
    ...     {"scan": "ss", "table": "dw.sales", "reason": "PRUNED", "path": "fast",
    ...      "kept": 30, "total": 1824},
    ...     {"scan": "r", "table": "dw.returns", "reason": "PRESERVED_SIDE"},
    ... ]), sep="\n")
    scan  table       partitions   decision
    ss    dw.sales    30 of 1,824  PRUNED (fast)
    r     dw.returns  all          PRESERVED_SIDE
    """
    rows = [("scan", "table", "partitions", "decision")]
    for found in decisions:
        pruned = "kept" in found
        rows.append(
            (
                plain(found["scan"]),
                plain(found["table"]),
                _read(found),
                f"{found['reason']} ({found['path']})" if pruned else found["reason"],
            )
        )
    widths = [max(map(len, column)) for column in zip_strict(*rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _read(found: Mapping[str, Any]) -> str:
    if "kept" in found:
        return f"{found['kept']:,} of {found['total']:,}"
    if (files := by_hop(found)) is not None:
        return files
    if found.get("files") is not None:
        return files_in_words(found["files"], found["total_files"])
    return "by condition" if found["reason"] in _BY_CONDITION else "all"


def reason(descriptor: Descriptor) -> str:
    """``PRUNED`` if any scan was; else the first scan's reason, or :data:`NO_PARTITIONED_TABLE`."""
    if descriptor.targets or descriptor.row_filters:
        return _PRUNED
    if descriptor.decisions:
        return descriptor.decisions[0].reason
    return NO_PARTITIONED_TABLE


def headline(descriptor: Descriptor) -> str:
    """The last line of the log, such as this one.

    ``kept 28 of 1,823 partitions (98.5 % pruned): store_sales.ss_sold_date_sk by 31 keys of
    date_dim``
    """
    rows = list(_conditions(descriptor))
    if not descriptor.targets:
        whole = "; ".join(unpruned(descriptor))
        if not rows and not whole:
            return "nothing to prune: the statement reads no partitioned table"
        if not whole:
            return plain("; ".join(rows))
        if rows:
            return plain(f"pruned no partitions: {whole}; {'; '.join(rows)}")
        return f"pruned nothing: {whole}"
    kept, total = descriptor.kept, descriptor.total
    share = f" ({100 * (total - kept) / total:.1f} % pruned)" if total else ""
    targets = "; ".join([*(_target(target) for target in descriptor.targets), *rows])
    return plain(f"kept {kept:,} of {counted(total, 'partition')}{share}: {targets}")


def unpruned(descriptor: Descriptor) -> list[str]:
    """One sentence for each scan of a partitioned table that is not pruned."""
    pruned, by_hops = (
        {target.scan for target in descriptor.targets},
        followed(descriptor.index_uses),
    )
    return [
        plain(f"{found.scan.name} reads all partitions, {found.reason}: {found.message}")
        for found in descriptor.decisions
        if found.reason not in _BY_CONDITION
        and found.scan not in by_hops
        and (found.scan not in pruned or found.reason != _PRUNED)
    ]


def _target(target: Target) -> str:
    columns = (
        target.pruned_columns[0]
        if len(target.pruned_columns) == 1
        else f"({', '.join(target.pruned_columns)})"
    )
    sources = " and ".join(
        f"{counted(source.keys, 'key')} of {source.name}" for source in target.sources
    )
    path = "" if target.path == "fast" else f" ({target.path})"
    of = "" if target.scan.name == target.scan.alias else f" of {target.scan.name}"
    return f"{target.scan.short_name}.{columns}{of} by {sources or 'its own conditions'}{path}"


def _conditions(descriptor: Descriptor) -> Iterator[str]:
    """The scans with a condition: each with its files, or else with its restricted rows."""
    files = {found.scan: found for found in descriptor.planned_files}
    by_scan: dict[ScanRef, list[RowFilter]] = {}
    for found in descriptor.row_filters:
        by_scan.setdefault(found.scan, []).append(found)
    for scan, filters in by_scan.items():
        name = scan.short_name + ("" if scan.name == scan.alias else f" as {scan.name}")
        keys = " and ".join(f"{each.column} in {_keys(each)}" for each in filters)
        planned = files.get(scan)
        if planned is None:
            yield f"rows of {name} by {keys} (predicate)"
        elif planned.files is None:
            yield f"files of {name} by {keys}"
        else:
            keys += by_index(descriptor.index_uses, scan)
            yield f"{files_in_words(planned.files, planned.total_files)} of {name} by {keys}"
    yield from followed(descriptor.index_uses).values()


def _keys(found: RowFilter) -> str:
    keys = counted(found.source.keys, "key")
    one = len(found.values) == 2
    what = f"the {'range' if one else 'ranges'} of {keys}" if found.is_range else keys
    return f"{what} of {found.source.name}"
