"""The figures of a run that lists of runs show; a small XCom that outlives the descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_hive_opt.documents.report import MAP_JOIN

FIGURES_KEY = "hive_opt_figures"
"""The XCom key of :meth:`Figures.to_json`."""
SUMMARY_KEY = "hive_opt_summary"
"""The XCom key of the summary of a run that returns none, because a gate or an error ended it."""


@dataclass(frozen=True)
class Figures:
    """The partitions and bytes of a run in total, and each scan's reason.

    ``scans`` has pairs of a scan's name and a reason code. ``seconds`` is by phase. ``read_bytes``
    and ``pruned_bytes`` are ``None`` if a size is not known. ``estimated`` says that the size of a
    pruned table was not known, so ``pruned_bytes`` takes the pruned partitions to be as large, on
    average, as those that the run read. ``stopped`` says why a gate ended the run before its join.
    """

    reason: str
    kept: int
    total: int
    scans: tuple[tuple[str, str], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    read_bytes: int | None = None
    pruned_bytes: int | None = None
    estimated: bool = False
    stopped: str | None = None

    @property
    def has_joined(self) -> bool:
        """Whether the statement ran: a local task alone saves nothing."""
        return MAP_JOIN in self.seconds

    def to_json(self) -> dict[str, Any]:
        """The figures for XCom."""
        return {**asdict(self), "scans": [list(pair) for pair in self.scans]}


def figures_of(summary: Mapping[str, Any]) -> Figures:
    """The figures in a run's summary.

    >>> figures_of({"reason": "PRUNED", "kept": 1, "total": 3, "seconds": {"map join": 0.5},
    ...     "decisions": [{"scan": "f", "reason": "PRUNED"}],
    ...     "reads": [{"table": "t", "bytes": 10, "total_bytes": 30}]})
    Figures(reason='PRUNED', kept=1, total=3, scans=(('f', 'PRUNED'),), seconds={'map join': 0.5}, \
read_bytes=10, pruned_bytes=20, estimated=False, stopped=None)
    >>> figures_of({"reason": "PRUNED", "kept": 2, "total": 6,
    ...     "decisions": [{"scan": "f", "table": "t", "reason": "PRUNED", "kept": 2, "total": 6}],
    ...     "reads": [{"table": "t", "bytes": 10, "partitions": 2, "total_bytes": None},
    ...         {"table": "small", "bytes": 1, "partitions": None, "total_bytes": None}]}
    ... ).pruned_bytes
    20
    """
    reads = summary.get("reads") or []
    pruned = [_pruned_bytes_of(read, summary.get("decisions", ())) for read in reads]
    return Figures(
        summary["reason"],
        summary["kept"],
        summary["total"],
        tuple((found["scan"], found["reason"]) for found in summary.get("decisions", ())),
        dict(summary.get("seconds", {})),
        _sum([read["bytes"] for read in reads]),
        _sum([amount for amount, _ in pruned]),
        any(estimated for _, estimated in pruned),
        summary.get("stopped"),
    )


def figures_in(value: object) -> Figures | None:
    """The figures in an XCom, perhaps of another version of this package; ``None`` if it has none.

    >>> figures_in({"reason": "PRUNED", "kept": 1, "total": 3, "scans": [["f", "PRUNED"], 7]})
    Figures(reason='PRUNED', kept=1, total=3, scans=(('f', 'PRUNED'),), seconds={}, \
read_bytes=None, pruned_bytes=None, estimated=False, stopped=None)
    >>> figures_in("a text"), figures_in({"reason": "PRUNED", "kept": "1", "total": 3})
    (None, None)
    """
    found = value if isinstance(value, Mapping) else {}
    reason, kept, total = found.get("reason"), found.get("kept"), found.get("total")
    if not isinstance(reason, str) or _count(kept) is None or _count(total) is None:
        return None
    scans = found.get("scans")
    pairs = [pair for pair in _items(scans) if len(_items(pair)) == 2]
    seconds = found.get("seconds")
    return Figures(
        reason,
        _count(kept) or 0,
        _count(total) or 0,
        tuple((str(name), str(code)) for name, code in pairs),
        {
            str(name): float(each)
            for name, each in (seconds.items() if isinstance(seconds, Mapping) else ())
            if isinstance(each, (int, float))
        },
        _count(found.get("read_bytes")),
        _count(found.get("pruned_bytes")),
        found.get("estimated") is True,
        stopped if isinstance(stopped := found.get("stopped"), str) else None,
    )


def _pruned_bytes_of(
    read: Mapping[str, Any], decisions: Iterable[Mapping[str, Any]]
) -> tuple[int | None, bool]:
    """The bytes of a table that were not read, and whether they are an estimate.

    Of a table without a list of partitions everything is read, unless its own metadata skips files.
    """
    whole, part = read["total_bytes"], read["bytes"]
    if part is None:
        return None, False
    if whole is not None:
        return max(0, whole - part), False
    scans = [found for found in decisions if found.get("table") == read["table"]]
    if any("total_files" in found for found in scans):
        return None, False
    pruned = sum(found["total"] - found["kept"] for found in scans if "kept" in found)
    if not pruned:
        return 0, False
    return (part * pruned // read["partitions"], True) if read["partitions"] else (None, False)


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _items(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
