"""The partition descriptor: what the local task tells the map join (HIVE-5119, steps 5 to 7).

A document, see :mod:`~airflow_hive_opt.runtime.documents`: sealed data, never code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Optional

from airflow_hive_opt.runtime.binding import Binding
from airflow_hive_opt.runtime.documents import Format
from airflow_hive_opt.runtime.partitions import Partition
from airflow_hive_opt.runtime.storage import DescriptorError as DescriptorError
from airflow_hive_opt.runtime.storage import StoragePath as StoragePath

VERSION = 5


@dataclass(frozen=True)
class SourceKeys:
    """A key source that was read: aliases, name for people, SQL, and how many distinct keys."""

    aliases: tuple[str, ...]
    name: str
    sql: str
    keys: int


@dataclass(frozen=True)
class Target:
    """One scan and the partitions it will read.

    ``reference`` is the table's place in the SQL text, start and stop; ``text`` what stands
    there. ``columns`` and ``types`` are all partition columns; ``pruned_columns`` those that are
    restricted, ``visible_columns`` what they are called where the reference is to a view;
    ``location`` is the table's, where known.
    ``path`` says how the partitions were found; where it was one ``filter``, said with
    ``alias``, the metastore can be asked again.
    """

    alias: str
    table: str
    text: str
    aliased: bool
    reference: tuple[int, int]
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

    @property
    def kept(self) -> int:
        """How many partitions will be read."""
        return len(self.partitions)


@dataclass(frozen=True)
class RowFilter:
    """One scan and the values that a data column must have in the rows it will read.

    ``alias`` to ``reference`` are as a target's. ``values`` are texts of the column's ``type``;
    where ``is_range``, they are the lowest and the highest.
    """

    alias: str
    table: str
    text: str
    aliased: bool
    reference: tuple[int, int]
    column: str
    type: str
    values: tuple[str, ...]
    is_range: bool
    source: SourceKeys


@dataclass(frozen=True)
class Decision:
    """What became of one scan of a partitioned table; ``message`` is for people."""

    alias: str
    table: str
    reason: str
    message: str


@dataclass(frozen=True)
class Descriptor:
    """Everything the map-join stage needs to know of the local task's work.

    ``query_digest`` ties it to one SQL text and its parameters; ``created`` is ISO 8601, UTC.
    ``statement`` is the text to run where the correlation rules made another of it; the targets'
    references are places in it. ``binding`` says for which session the list holds; without one it
    is for the application that made it alone.
    """

    query_digest: str
    created: str
    targets: tuple[Target, ...]
    decisions: tuple[Decision, ...]
    row_filters: tuple[RowFilter, ...] = ()
    statement: Optional[str] = None
    binding: Optional[Binding] = None

    @property
    def kept(self) -> int:
        """Partitions to read, over all targets."""
        return sum(target.kept for target in self.targets)

    @property
    def total(self) -> int:
        """Partitions there were, over all targets."""
        return sum(target.total for target in self.targets)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the document, in hexadecimal; raises :class:`DescriptorError`."""
        return _FORMAT.digest(self)


def query_digest(sql: str, parameters: Mapping[str, object] | None) -> str:
    """SHA-256 of a statement and its parameters, in hexadecimal.

    A parameter that JSON has no word for counts by its text.
    """
    query = {"sql": sql, "parameters": parameters or {}}
    return hashlib.sha256(json.dumps(query, sort_keys=True, default=str).encode()).hexdigest()


def now() -> str:
    """The time for :attr:`Descriptor.created`."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def encode(descriptor: Descriptor) -> bytes:
    """The document as bytes; raises :class:`DescriptorError` for what can't be read again."""
    return _FORMAT.encode(descriptor)


def to_json(descriptor: Descriptor) -> str:
    """The document as text, for people; raises :class:`DescriptorError`."""
    return _FORMAT.text(descriptor)


def decode(data: bytes) -> Descriptor:
    """The descriptor in ``data``; raises :class:`DescriptorError` where it can't be trusted."""
    return _FORMAT.decode(data)


def write(descriptor: Descriptor, path: StoragePath) -> None:
    """Writes the document whole or not at all; raises :class:`DescriptorError`."""
    _FORMAT.write(descriptor, path)


def load(path: StoragePath) -> Descriptor:
    """The descriptor at ``path``, whosever it is.

    Raises :class:`~airflow_hive_opt.runtime.storage.NothingThereError` where there is no file, and
    :class:`DescriptorError`.
    """
    return _FORMAT.read(path)


def read(path: StoragePath, expected_query: str, expected_digest: str | None = None) -> Descriptor:
    """The descriptor at ``path``, verified.

    ``expected_query`` is the :func:`query_digest` of the statement to be run, ``expected_digest``
    the :attr:`Descriptor.digest` that the local task announced. Raises :class:`DescriptorError`.
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
    """Raises ``ValueError`` where fields of it don't fit each other."""
    for target in descriptor.targets:
        width = len(target.columns)
        if len(target.types) != width:
            raise ValueError(f"the target {target.alias} has not one type for each column")
        if any(len(part.values) != width for part in target.partitions):
            raise ValueError(f"the target {target.alias} has not one value for each column")
        if not set(target.columns).issuperset(target.pruned_columns):
            raise ValueError(f"the target {target.alias} is pruned by columns that it has not")
    for found in descriptor.row_filters:
        if found.is_range and len(found.values) != 2:
            raise ValueError(f"the range of {found.column} has not two values")


_FORMAT = Format("descriptor", VERSION, Descriptor, _check)
