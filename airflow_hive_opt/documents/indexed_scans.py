"""What key indexes did for the scans of a statement: as parts of the descriptor, and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Optional

from airflow_hive_opt.documents.log_text import counted, files_in_words
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.text_enum import StrEnum

# As Spark and Iceberg count it when they put small files together.
_OPENING = 4 << 20  # bytes


class IndexCode(StrEnum):
    """What a run did with the key index of one column; :attr:`sentence` explains it."""

    USED = "USED"
    NOT_READABLE = "NOT_READABLE"
    OTHER_TYPE = "OTHER_TYPE"
    KEYS_NOT_LISTED = "KEYS_NOT_LISTED"
    NO_FIXED_SNAPSHOT = "NO_FIXED_SNAPSHOT"
    NO_PARTITION_VALUES = "NO_PARTITION_VALUES"
    MOST_FILES_HOLD_KEYS = "MOST_FILES_HOLD_KEYS"
    OTHER_SNAPSHOT = "OTHER_SNAPSHOT"
    NO_BRANCH = "NO_BRANCH"
    NOT_PUBLISHED = "NOT_PUBLISHED"
    NOT_TRIED_AGAIN = "NOT_TRIED_AGAIN"
    KEYS_NOT_READ = "KEYS_NOT_READ"
    COSTS_MORE = "COSTS_MORE"
    NOT_ASKED_AGAIN = "NOT_ASKED_AGAIN"

    @property
    def sentence(self) -> str:
        """The meaning of the code, for logs."""
        return _SENTENCES[self]


_SENTENCES = {
    IndexCode.USED: (
        "the scan reads only the partitions of files that hold the keys, or that the index does "
        "not cover"
    ),
    IndexCode.NOT_READABLE: "the index can't be read",
    IndexCode.OTHER_TYPE: "the index, the column and the keys do not have the same type of values",
    IndexCode.KEYS_NOT_LISTED: "the keys are too many, or not known one by one",
    IndexCode.NO_FIXED_SNAPSHOT: "the statement can't be held to one snapshot of the table",
    IndexCode.NO_PARTITION_VALUES: (
        "no partition column of the table has values that can become a condition"
    ),
    IndexCode.MOST_FILES_HOLD_KEYS: (
        "the partitions of the files to read are nearly all partitions of the table"
    ),
    IndexCode.OTHER_SNAPSHOT: (
        "the table has another snapshot at the map join than at the local task"
    ),
    IndexCode.NO_BRANCH: "the statement could not run on a branch of the table",
    IndexCode.NOT_PUBLISHED: (
        "the statement ran on a branch that could not become the table's current state, so it ran "
        "again without the index; the log says why"
    ),
    IndexCode.NOT_TRIED_AGAIN: (
        "an earlier run had to run its statement twice (NOT_PUBLISHED), so this run does not use "
        "the index; about every tenth run does"
    ),
    IndexCode.KEYS_NOT_READ: "the keys of the other large table can't be read; the log says why",
    IndexCode.COSTS_MORE: (
        "to read the keys of the other large table would cost more than half of what the scan reads"
    ),
    IndexCode.NOT_ASKED_AGAIN: (
        "the same keys of the other large table did not pay in an earlier run, so this run does "
        "not read them; about every tenth run does"
    ),
}


@dataclass(frozen=True)
class SkippedKeys:
    """Keys that are not worth reading, by the digest of their queries and conditions.

    ``runs`` is the number of runs in a row that did not read them.
    """

    digest: str
    runs: int


def reading_cost(files: int, bytes_: int) -> int:
    """The cost of reading some files, in bytes; to open one costs as much as some bytes."""
    return bytes_ + files * _OPENING


@dataclass(frozen=True)
class HeldTable:
    """A table and the ``snapshot`` at which the statement and a key query read it.

    ``table_id`` is as in :class:`~airflow_hive_opt.documents.descriptor.Snapshot`.
    """

    table: str
    snapshot: str
    table_id: str = ""


@dataclass(frozen=True)
class Hop:
    """Keys for an index from large ``tables`` of which the statement reads a part.

    ``source`` is their name in logs, ``sql`` the key query; ``keys`` and ``seconds`` are its
    result's number and its time, ``None`` if it has not run. The scan reads ``files`` data files
    with ``bytes`` because of the keys, and ``files_without`` with ``bytes_without`` otherwise; a
    number is ``None`` if it is not known. ``digest`` is that of the keys, see :class:`SkippedKeys`.
    """

    tables: tuple[HeldTable, ...]
    source: str = ""
    sql: str = ""
    keys: Optional[int] = None
    seconds: Optional[float] = None
    files: Optional[int] = None
    bytes: Optional[int] = None
    files_without: Optional[int] = None
    bytes_without: Optional[int] = None
    digest: str = ""

    def took_longer(self, seconds: float) -> bool:
        """Whether the key query took longer than it saved; the statement took ``seconds``.

        What it left unread would have taken at most as much longer as it is larger than what was
        read.

        >>> hop = Hop((), "r", "", 9, 3.0, files=75, bytes=0, files_without=100, bytes_without=0)
        >>> hop.took_longer(12), hop.took_longer(6)
        (False, True)
        """
        known = self.seconds, self.files, self.bytes, self.files_without, self.bytes_without
        if None in known:
            return False
        read = reading_cost(self.files or 0, self.bytes or 0)
        unread = reading_cost(self.files_without or 0, self.bytes_without or 0) - read
        return (self.seconds or 0) * read > seconds * unread


@dataclass(frozen=True)
class IndexUse:
    """What a run did with the key index of a scan's ``column``.

    ``code`` is an :class:`IndexCode`, ``why`` says more. The conditions by the index are true for
    the ``snapshot`` of the scan's table alone: ``files`` of its ``total_files`` data files hold one
    of the keys, or are among the ``unknown`` files that the index does not cover. ``runs`` is the
    number of runs in a row with ``NOT_TRIED_AGAIN``. ``hop`` is set if the keys came from another
    large table; the conditions are then true for its snapshot too. ``skipped_keys`` is set if these
    keys were of no use: the next run need not read them. ``table_id`` is as in
    :class:`HeldTable`.
    """

    scan: ScanRef
    column: str
    code: str
    why: str = ""
    snapshot: Optional[str] = None
    files: Optional[int] = None
    unknown: Optional[int] = None
    total_files: Optional[int] = None
    runs: Optional[int] = None
    hop: Optional[Hop] = None
    skipped_keys: Optional[SkippedKeys] = None
    table_id: str = ""

    @property
    def snapshots(self) -> dict[str, HeldTable]:
        """The snapshots for which the conditions are true, by table; none if it is not used."""
        if self.code != IndexCode.USED or self.snapshot is None:
            return {}
        own = HeldTable(self.scan.table, self.snapshot, self.table_id)
        return {each.table: each for each in (own, *(self.hop.tables if self.hop else ()))}


@dataclass(frozen=True)
class HeldScan:
    """A scan that reads its table at ``snapshot`` if conditions by a key index are used.

    ``text`` and ``aliased`` are as in :class:`~airflow_hive_opt.documents.descriptor.Target`.
    """

    scan: ScanRef
    text: str
    aliased: bool
    snapshot: str


def uses_for_xcom(
    uses: Iterable[IndexUse], scan: ScanRef, seconds: float | None
) -> list[dict[str, object]]:
    """The uses of one scan as plain values; ``seconds`` is the statement's time if it has run.

    Without key queries, which may be long.
    """
    return [_plain(use, seconds) for use in uses if use.scan == scan]


def by_index(uses: Iterable[IndexUse], scan: ScanRef) -> str:
    """The indexes that a scan's own keys have asked, for a line about these keys."""
    used = [use.column for use in _used(uses) if use.scan == scan and use.hop is None]
    return f" and the key index of {', '.join(used)}" if used else ""


def followed(uses: Iterable[IndexUse]) -> dict[ScanRef, str]:
    """The scans with conditions by keys of other large tables: each with what they leave."""
    found: dict[ScanRef, list[IndexUse]] = {}
    for use in _used(uses):
        if use.hop is not None:
            found.setdefault(use.scan, []).append(use)
    return {scan: _sentence(scan, uses) for scan, uses in found.items()}


def by_hop(decision: Mapping[str, Any]) -> str | None:
    """The files that a hop leaves of a scan, by its decision in a summary."""
    for use in decision.get("indexes") or ():
        hop = use.get("hop")
        if hop and use.get("code") == IndexCode.USED and hop.get("files") is not None:
            return files_in_words(hop["files"], use.get("total_files"))
    return None


def keys_in_words(hop: Hop) -> str:
    """``5 keys of returns and days``."""
    return (
        f"keys of {hop.source}"
        if hop.keys is None
        else f"{counted(hop.keys, 'key')} of {hop.source}"
    )


def _sentence(scan: ScanRef, uses: list[IndexUse]) -> str:
    name = scan.short_name + ("" if scan.name == scan.alias else f" as {scan.name}")
    by = (f"{use.column} with {keys_in_words(use.hop)}" for use in uses if use.hop)
    hop = uses[0].hop
    files = None if hop is None else hop.files
    what = "files" if files is None else files_in_words(files, uses[0].total_files)
    return f"{what} of {name} by the key index of {' and of '.join(by)}"


def _used(uses: Iterable[IndexUse]) -> list[IndexUse]:
    return [use for use in uses if use.code == IndexCode.USED]


def _plain(use: IndexUse, seconds: float | None) -> dict[str, object]:
    hop = use.hop
    found = {name: value for name, value in asdict(use).items() if name not in ("scan", "hop")}
    if hop is None:
        return found
    is_judged = use.code == IndexCode.USED and use.skipped_keys is None and seconds is not None
    if is_judged and hop.took_longer(seconds or 0):
        found["skipped_keys"] = asdict(SkippedKeys(hop.digest, 0))
    return found | {"hop": {name: value for name, value in asdict(hop).items() if name != "sql"}}
