"""The partition descriptor: the local task's result for the map join (HIVE-5119, steps 5 to 7).

It is a document as in :mod:`~airflow_hive_opt.documents.format`: data with a digest, never code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import Optional

from airflow_hive_opt.documents.binding import SPARK, Binding
from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.indexed_scans import HeldScan, IndexUse, SkippedKeys
from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.documents.small_tables import SmallTable
from airflow_hive_opt.documents.storage import DescriptorError as DescriptorError
from airflow_hive_opt.documents.storage import StoragePath as StoragePath
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.statement.scan_ref import ScanRef

VERSION = 17


@dataclass(frozen=True)
class SourceKeys:
    """A key source that was read, its name in logs, and the number of its distinct keys."""

    aliases: tuple[str, ...]
    name: str
    sql: str
    keys: int


@dataclass(frozen=True)
class NewPartitions:
    """Which partitions a scan reads too if they are added after the local task.

    They match all ``keys`` and are not in ``left_out``, the values of those that existed and did
    not fulfil the other conditions. Some keys may come from the partition names of other tables.
    Such keys do not belong to ``keys``, and ``left_out_by_names`` are the partitions that they left
    out. ``names`` has the digest of each such table's partitions: if it differs at the map join,
    these partitions are read too.
    """

    keys: tuple[KeyTuples, ...]
    left_out: tuple[tuple[Optional[str], ...], ...]
    left_out_by_names: tuple[tuple[Optional[str], ...], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """One scan and the partitions that it will read.

    - ``text`` is the text at the position of ``scan``. ``aliased`` says that an alias follows it.
    - ``columns`` and ``types`` are the names and Hive types of all partition columns.
      ``pruned_columns`` are those that are restricted. ``visible_columns`` are their names in the
      view, if the reference is to a view.
    - ``location`` is the table's location, or ``None`` if not known.
    - ``partitions`` are the partitions to read, ``total`` is the number of all partitions.
    - ``path`` says how the partitions were found. ``filter`` is set if they were found by one
      filter, which uses the scan's alias; the metastore can evaluate it again. Otherwise
      ``new_partitions`` says what to read of the partitions that are added; it has one entry for
      each alternative, and none if no other application reads the descriptor.
    """

    scan: ScanRef
    text: str
    aliased: bool
    columns: tuple[str, ...]
    types: tuple[str, ...]
    pruned_columns: tuple[str, ...]
    visible_columns: tuple[str, ...]
    location: Optional[str]
    partitions: tuple[Partition, ...]
    total: int
    path: str
    filter: Optional[str]
    sources: tuple[SourceKeys, ...]
    new_partitions: tuple[NewPartitions, ...] = ()

    @property
    def kept(self) -> int:
        """The number of partitions to read."""
        return len(self.partitions)


@dataclass(frozen=True)
class RowFilter:
    """One scan and the values that a data column must have in the rows that it will read.

    ``text`` and ``aliased`` are as in :class:`Target`.
    ``values`` are values of the column's ``type``, as text; a TIMESTAMP is in microseconds. If
    ``is_range`` is true, they are pairs of a lowest and a highest value. ``guard`` is the column of
    MERGE's source that must have one of these values too, in the rows that fulfil ``guarded``.
    ``or_null`` says that rows with NULL in the column are read too. ``guards_only`` says that the
    values are no condition on the scan, only on ``guard``.
    """

    scan: ScanRef
    text: str
    aliased: bool
    column: str
    type: str
    values: tuple[str, ...]
    is_range: bool
    source: SourceKeys
    guard: Optional[str] = None
    guarded: tuple[str, ...] = ()
    or_null: bool = False
    guards_only: bool = False


@dataclass(frozen=True)
class PlannedFiles:
    """The data files that one scan will read, found by the metadata of its table.

    ``expression`` is the condition: in Iceberg's JSON, or as SQL for tables of Delta and Hudi.
    ``partitions``, ``files`` and ``bytes`` are what it leaves of ``total_files`` and
    ``total_bytes``; a number is ``None`` if it is not known. ``without_index`` is the condition
    without the parts that key indexes give. ``keys_digest`` is set while the numbers are
    to come from the statement's plan: the digest of the keys as in :class:`SkippedKeys`.
    """

    scan: ScanRef
    expression: Optional[str]
    partitions: Optional[int] = None
    files: Optional[int] = None
    bytes: Optional[int] = None
    total_files: Optional[int] = None
    total_bytes: Optional[int] = None
    without_index: Optional[str] = None
    keys_digest: Optional[str] = None


@dataclass(frozen=True)
class Snapshot:
    """A small Iceberg or Delta table and the snapshot that it had at the local task.

    ``snapshot`` is its ID, or the number of Delta's version, as text, which JavaScript does not
    round. ``held`` says that the statement reads this snapshot. ``table_id`` is Delta's ID of a
    held table: one that is made again under the name has the same numbers of versions.
    """

    table: str
    snapshot: str
    held: bool = False
    table_id: str = ""


@dataclass(frozen=True)
class Insertion:
    """A clause of MERGE that inserts rows.

    ``at`` is the position at which a condition can begin, ``condition`` the position of the
    clause's own condition.
    """

    at: int
    condition: Optional[tuple[int, int]]


@dataclass(frozen=True)
class Changes:
    """Where MERGE, UPDATE or DELETE takes conditions on the rows of its target.

    ``target`` is the position of the target's name in the SQL text, start and stop in characters,
    ``condition`` the position of the condition in ON or WHERE. ``source`` is the position of
    MERGE's source with its alias ``source_alias``, ``inserts`` are MERGE's clauses that insert
    rows. ``aliased`` says that an alias follows the target.
    """

    target: tuple[int, int]
    condition: tuple[int, int]
    source: Optional[tuple[int, int]] = None
    source_alias: str = ""
    inserts: tuple[Insertion, ...] = ()
    aliased: bool = True


@dataclass(frozen=True)
class Decision:
    """The decision for one scan of a partitioned table, or for the whole statement.

    ``reason`` is a code, ``message`` a sentence for logs. ``skipped_keys`` is set if the keys
    matched nearly all partitions: the next run need not read them.
    """

    scan: ScanRef
    reason: str
    message: str
    skipped_keys: Optional[SkippedKeys] = None


@dataclass(frozen=True)
class KeySetUse:
    """What a task did with the key set of the key query ``sql``; ``source`` is its name in logs.

    ``code`` is a :class:`~airflow_hive_opt.documents.key_set.KeySetCode`, ``why`` says more, such
    as which table has changed.
    """

    source: str
    sql: str
    code: str
    why: str = ""


@dataclass(frozen=True)
class Descriptor:
    """The local task's results that the map-join stage needs.

    ``query_digest`` binds it to one SQL text and its parameters. ``created`` is an ISO 8601 time in
    UTC. ``statement`` is the text to run if the correlation rules rewrote the statement, or if it
    is held to ``snapshots``; the targets' references are then positions in it. ``binding`` says for
    which sessions the partition list is valid. Without a binding, only the application that made
    the list may use it.
    ``changes`` is set for MERGE, UPDATE and DELETE. ``small_tables`` are those that a worker has
    read. ``key_sets`` says which keys came from a key set, and why others did not.
    ``index_filters`` are conditions by key indexes. They hold only for the snapshots of
    ``index_uses``, so a reader that does not hold the statement to these must ignore them.
    ``held_scans`` are the scans that must read these snapshots then.
    """

    query_digest: str
    created: str
    targets: tuple[Target, ...]
    decisions: tuple[Decision, ...]
    row_filters: tuple[RowFilter, ...] = ()
    planned_files: tuple[PlannedFiles, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    statement: Optional[str] = None
    binding: Optional[Binding] = None
    changes: Optional[Changes] = None
    small_tables: tuple[SmallTable, ...] = ()
    key_sets: tuple[KeySetUse, ...] = ()
    index_filters: tuple[RowFilter, ...] = ()
    index_uses: tuple[IndexUse, ...] = ()
    held_scans: tuple[HeldScan, ...] = ()

    @property
    def kept(self) -> int:
        """The number of partitions to read, over all targets."""
        return sum(target.kept for target in self.targets)

    @property
    def total(self) -> int:
        """The number of existing partitions, over all targets."""
        return sum(target.total for target in self.targets)

    @property
    def reader(self) -> str:
        """What has read the keys: ``reader`` of the binding."""
        return self.binding.reader if self.binding else SPARK

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the document, in hexadecimal; raises ``DescriptorError``."""
        return _FORMAT.digest(self)


def query_digest(sql: str, parameters: Mapping[str, object] | None) -> str:
    """SHA-256 of a statement and its parameters, in hexadecimal.

    A parameter of a type that JSON does not have is represented by its text.
    """
    query = {"sql": sql, "parameters": parameters or {}}
    return hashlib.sha256(json.dumps(query, sort_keys=True, default=str).encode()).hexdigest()


def seconds_since(created: str) -> float:
    """The age of a :attr:`Descriptor.created`, in seconds, by this machine's clock."""
    return (datetime.now(timezone.utc) - datetime.fromisoformat(created)).total_seconds()


def now() -> str:
    """The current time for :attr:`Descriptor.created`, ISO 8601 in UTC, in whole seconds."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def read(path: StoragePath, expected_query: str, expected_digest: str | None = None) -> Descriptor:
    """The descriptor at ``path``, if it belongs to the statement and the attempt.

    ``expected_query`` is the :func:`query_digest` of the statement to run. ``expected_digest`` is
    the :attr:`Descriptor.digest` that the local task announced, or ``None`` for no check. Raises
    ``DescriptorError``.
    """
    descriptor = load(path)
    if expected_digest is not None and descriptor.digest != expected_digest:
        raise DescriptorError(
            f"the descriptor {path} is refused: it is another task's or attempt's"
        )
    if descriptor.query_digest != expected_query:
        raise DescriptorError(f"the descriptor {path} is refused: it belongs to another statement")
    return descriptor


def _check(descriptor: Descriptor) -> None:
    """Raises ``ValueError`` if the descriptor's fields contradict each other."""
    for kind, scans in (
        ("targets", [target.scan for target in descriptor.targets]),
        ("planned files", [found.scan for found in descriptor.planned_files]),
    ):
        if len({scan.position for scan in scans}) < len(scans):
            raise ValueError(f"two of the {kind} are of the same scan")
    for target in descriptor.targets:
        width, name = len(target.columns), target.scan.name
        if len(target.types) != width:
            raise ValueError(f"the target {name} does not have one type for each column")
        if any(len(part.values) != width for part in target.partitions):
            raise ValueError(f"the target {name} does not have one value for each column")
        if not set(target.columns).issuperset(target.pruned_columns):
            raise ValueError(f"the target {name} is pruned by columns that it does not have")
        types = dict(zip(target.columns, target.types))
        for keys in (keys for each in target.new_partitions for keys in each.keys):
            if not types.keys() >= set(keys.columns):
                raise ValueError(f"the target {name} has keys of columns that it does not have")
            keys.tuples([types[column] for column in keys.columns])
    for found in (*descriptor.row_filters, *descriptor.index_filters):
        _ = found.scan.position
        if found.is_range and (len(found.values) % 2 or not found.values):
            raise ValueError(f"the ranges of {found.column} do not have two values each")


_FORMAT = Format("descriptor", VERSION, Descriptor, _check)
encode, to_json, decode = _FORMAT.encode, _FORMAT.text, _FORMAT.decode
write, load = _FORMAT.write, _FORMAT.read
