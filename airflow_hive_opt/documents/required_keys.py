"""The keys that a local task leaves for sensors, so that they need not read them again.

They are a document as in :mod:`~airflow_hive_opt.documents.format`, next to the descriptor.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.documents.storage import DescriptorError, StoragePath
from airflow_hive_opt.metastores.required import Required, combined
from airflow_hive_opt.statement.zip_strict import zip_strict

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScanKeys:
    """The keys by which one alternative of a scan finds its partitions.

    Each of ``keys`` comes from one small table. ``all_columns`` are the table's partition columns
    and ``types`` their Hive types. ``provider`` and ``location`` are those of
    :class:`~airflow_hive_opt.metastores.required.Required`. ``queries`` has the query of each of
    ``keys``; it is empty if the query returns more columns than these.
    """

    table: str
    all_columns: tuple[str, ...]
    types: tuple[str, ...]
    provider: str
    keys: tuple[KeyTuples, ...]
    location: str = ""
    queries: tuple[str, ...] = ()

    def types_of(self, keys: KeyTuples) -> list[str]:
        """The Hive types of the columns of these keys."""
        types = dict(zip_strict(self.all_columns, self.types))
        return [types[name] for name in keys.columns]

    def required(self, only: Collection[str] = ()) -> Required | None:
        """The required partitions; with ``only``, the values of these columns.

        ``None`` if no keys count. Raises
        :class:`~airflow_hive_opt.metastores.required.TooManyRequiredPartitions`.
        """
        usable = [
            (keys.columns, keys.tuples(self.types_of(keys), bool(self.provider)))
            for keys in self.keys
            if not only or not set(only).isdisjoint(keys.columns)
        ]
        if not usable:
            return None
        named = {name for names, _ in usable for name in names}
        columns = tuple(
            name for name in self.all_columns if name in named and (not only or name in only)
        )
        wanted = sorted({tuple(row[name] for name in columns) for row in combined(usable)})
        return Required(
            self.table,
            self.all_columns,
            self.types,
            columns,
            tuple(wanted),
            self.provider,
            self.location,
        )


@dataclass(frozen=True)
class FoundKeys:
    """All keys that a sensor can wait for, and a sentence for each scan that has none."""

    scans: tuple[ScanKeys, ...]
    notes: tuple[str, ...]

    def required(self, only: Sequence[str] = ()) -> Iterator[Required]:
        """The required partitions of each scan; see :meth:`ScanKeys.required`."""
        chosen = frozenset(map(str.lower, only))
        return (found for each in self.scans if (found := each.required(chosen)) is not None)

    def by_query(self) -> Iterator[tuple[str, ScanKeys, KeyTuples]]:
        """Each query of keys, if it is known, with the scan that it is for and what it returned."""
        return (
            (query, scan, keys)
            for scan in self.scans
            for query, keys in zip(scan.queries, scan.keys)
            if query
        )

    def has_columns(self, only: Sequence[str]) -> bool:
        """Whether there are keys of every one of these columns."""
        named = {name for scan in self.scans for keys in scan.keys for name in keys.columns}
        return named.issuperset(map(str.lower, only))


@dataclass(frozen=True)
class _Document:
    """``descriptor`` is the digest of the descriptor of the same attempt."""

    query_digest: str
    descriptor: str
    scans: tuple[ScanKeys, ...]
    notes: tuple[str, ...]


def keys_path(path: StoragePath) -> StoragePath:
    """The path of the keys of the attempt whose descriptor is at ``path``."""
    return path.with_name(f"{path.stem}.keys.json")


def keep_keys(found: FoundKeys, query_digest: str, digest: str, path: StoragePath) -> None:
    """Writes the keys next to the descriptor at ``path``, whose digest is ``digest``.

    A failure is only logged: a sensor without them reads the keys itself.
    """
    try:
        document = _Document(query_digest, digest, found.scans, found.notes)
        _FORMAT.write(document, keys_path(path))
    except Exception as error:  # noqa: BLE001 - whatever it is
        log.warning("the keys are not stored, so a sensor will read them again: %s", error)


def read_keys(path: StoragePath, query_digest: str, digest: str) -> FoundKeys:
    """The keys that :func:`keep_keys` wrote for the descriptor at ``path``.

    Raises :class:`~airflow_hive_opt.documents.storage.NothingThereError` if there are none, and
    ``DescriptorError`` for all other failures. Among these are the keys of another statement or
    another attempt.
    """
    at = keys_path(path)
    found = _FORMAT.read(at)
    for own, expected, whose in (
        (found.query_digest, query_digest, "another statement"),
        (found.descriptor, digest, "another attempt"),
    ):
        if own != expected:
            raise DescriptorError(f"the {_FORMAT.kind} {at} is refused: it belongs to {whose}")
    return FoundKeys(found.scans, found.notes)


def _check(found: _Document) -> None:
    """Raises ``ValueError`` if the document's fields contradict each other."""
    for scan in found.scans:
        if len(scan.types) != len(scan.all_columns):
            count, columns = len(scan.types), len(scan.all_columns)
            raise ValueError(f"{scan.table} has {count} types for {columns} partition columns")
        if len(scan.queries) not in (0, len(scan.keys)):
            raise ValueError(f"{scan.table} has not one query for each of its keys")
        types = dict(zip_strict(scan.all_columns, scan.types))
        for keys in scan.keys:
            if not types.keys() >= set(keys.columns):
                raise ValueError(f"{scan.table} does not have all the columns of its keys")
            keys.tuples([types[name] for name in keys.columns], bool(scan.provider))


_FORMAT = Format("list of keys", 3, _Document, _check)
