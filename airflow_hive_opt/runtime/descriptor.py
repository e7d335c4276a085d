"""The partition descriptor: what the local task tells the map join (HIVE-5119, steps 5 to 7).

One JSON document, gzip above a size, sealed with a SHA-256 over its content. It is data, never
code. A document that is cut short, altered or of another version is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeAlias

from upath import UPath
from upath.extensions import ProxyUPath

from airflow_hive_opt.runtime.binding import Binding
from airflow_hive_opt.runtime.partitions import Partition

StoragePath: TypeAlias = UPath | ProxyUPath
"""A place in any storage that fsspec knows; Airflow's ObjectStoragePath is one."""

VERSION = 4
_GZIP_ABOVE_BYTES = 64 * 1024
# Above this many partitions nobody reads it line by line, and an indented one takes ten times as
# long to write.
_INDENT_UP_TO = 1_000
_GZIP_MAGIC = b"\x1f\x8b"


class DescriptorError(Exception):
    """A descriptor that can't be written, read or trusted."""


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
    location: str | None
    partitions: tuple[Partition, ...]
    total: int
    path: str
    filter: str | None
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
    statement: str | None = None
    binding: Binding | None = None

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
        """SHA-256 of the content, in hexadecimal."""
        return _digest(_content(self))


def query_digest(sql: str, parameters: Mapping[str, object] | None) -> str:
    """SHA-256 of a statement and its parameters, in hexadecimal."""
    return _digest({"sql": sql, "parameters": parameters or {}})


def now() -> str:
    """The time for :attr:`Descriptor.created`."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def encode(descriptor: Descriptor) -> bytes:
    """The document as bytes, compressed where that pays."""
    document = {"version": VERSION, **_content(descriptor), "sha256": descriptor.digest}
    indent = 1 if descriptor.kept <= _INDENT_UP_TO else None
    data = json.dumps(document, ensure_ascii=False, indent=indent, default=vars).encode()
    return gzip.compress(data, mtime=0) if len(data) > _GZIP_ABOVE_BYTES else data


def decode(data: bytes) -> Descriptor:
    """The descriptor in ``data``; raises :class:`DescriptorError` where it can't be trusted."""
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == _GZIP_MAGIC else data)
    except (ValueError, EOFError, OSError) as error:
        raise DescriptorError("it is cut short or no JSON") from error
    if not isinstance(document, dict):
        raise DescriptorError("it is no JSON object")
    if document.get("version") != VERSION:
        raise DescriptorError(
            f"its version is {document.get('version')!r}, this package reads version {VERSION}: "
            "run the local task again with the same package version as the map join"
        )
    seal = document.pop("sha256", None)
    document.pop("version")
    if seal != _digest(document):
        raise DescriptorError("its digest does not fit its content: it was altered or cut short")
    try:
        return _descriptor(document)
    except (KeyError, TypeError) as error:
        raise DescriptorError(f"a field is missing or of the wrong type: {error}") from error


def write(descriptor: Descriptor, path: StoragePath) -> None:
    """Writes the document whole or not at all; raises :class:`DescriptorError`."""
    write_whole(encode(descriptor), path)


def write_whole(data: bytes, path: StoragePath) -> None:
    """Writes a file that appears with all its content; raises :class:`DescriptorError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file_system = path.fs
        with file_system.transaction, file_system.open(path.path, "wb") as file:
            file.write(data)
    except (OSError, ValueError, ImportError) as error:
        raise DescriptorError(f"can't write {path}: {error}") from error


def read(path: StoragePath, expected_query: str, expected_digest: str | None = None) -> Descriptor:
    """The descriptor at ``path``, verified.

    ``expected_query`` is the :func:`query_digest` of the statement to be run, ``expected_digest``
    the :attr:`Descriptor.digest` that the local task announced. Raises :class:`DescriptorError`.
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError, ImportError) as error:
        raise DescriptorError(f"can't read the descriptor {path}: {error}") from error
    try:
        descriptor = decode(data)
    except DescriptorError as error:
        raise DescriptorError(f"the descriptor {path} is refused: {error}") from error
    if expected_digest is not None and descriptor.digest != expected_digest:
        raise DescriptorError(
            f"the descriptor {path} is refused: it is another task's or attempt's"
        )
    if descriptor.query_digest != expected_query:
        raise DescriptorError(f"the descriptor {path} is refused: it belongs to another statement")
    return descriptor


def _content(descriptor: Descriptor) -> dict[str, Any]:
    """The fields by name; what they hold is copied by none and made JSON by ``default=vars``."""
    return {field.name: getattr(descriptor, field.name) for field in fields(descriptor)}


def _digest(content: object) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, default=_plain)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _plain(value: object) -> object:
    """A data class as its fields; a parameter that JSON has no word for as text."""
    return vars(value) if is_dataclass(value) else str(value)


def _descriptor(document: Mapping[str, Any]) -> Descriptor:
    return Descriptor(
        query_digest=document["query_digest"],
        created=document["created"],
        targets=tuple(_target(target) for target in document["targets"]),
        decisions=tuple(Decision(**decision) for decision in document["decisions"]),
        row_filters=tuple(_row_filter(found) for found in document["row_filters"]),
        statement=document["statement"],
        binding=document["binding"] and Binding(**document["binding"]),
    )


def _target(document: Mapping[str, Any]) -> Target:
    return Target(
        alias=document["alias"],
        table=document["table"],
        text=document["text"],
        aliased=document["aliased"],
        reference=(document["reference"][0], document["reference"][1]),
        columns=tuple(document["columns"]),
        types=tuple(document["types"]),
        pruned_columns=tuple(document["pruned_columns"]),
        visible_columns=tuple(document["visible_columns"]),
        location=document["location"],
        partitions=tuple(
            Partition(tuple(part["values"]), part["location"], part["rows"], part["bytes"])
            for part in document["partitions"]
        ),
        total=document["total"],
        path=document["path"],
        filter=document["filter"],
        sources=tuple(_source(source) for source in document["sources"]),
    )


def _row_filter(document: Mapping[str, Any]) -> RowFilter:
    return RowFilter(
        **{
            **document,
            "reference": (document["reference"][0], document["reference"][1]),
            "values": tuple(document["values"]),
            "source": _source(document["source"]),
        }
    )


def _source(document: Mapping[str, Any]) -> SourceKeys:
    return SourceKeys(**{**document, "aliases": tuple(document["aliases"])})
