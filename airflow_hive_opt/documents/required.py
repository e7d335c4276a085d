"""The list of the partitions that the keys of a statement require, from one process to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.documents.storage import DescriptorError, StoragePath
from airflow_hive_opt.metastores.required import Required


@dataclass(frozen=True)
class RequiredPartitions:
    """The partitions that the keys of one statement require, as one attempt of a task found them.

    ``query_digest`` is the statement's digest. ``columns`` are the requested columns, or empty for
    all. ``token`` is the attempt's token, see
    :attr:`~airflow_hive_opt.documents.job.Job.token`.
    """

    query_digest: str
    columns: tuple[str, ...]
    token: str
    tables: tuple[Required, ...]

    @property
    def count(self) -> int:
        """The number of required partitions."""
        return sum(len(entry.tuples) for entry in self.tables)

    @property
    def in_words(self) -> str:
        """A line for the log."""
        tables = ", ".join(entry.table for entry in self.tables) or "no table"
        return f"the keys require {self.count:,} partitions of {tables}"


def write(found: RequiredPartitions, path: StoragePath) -> None:
    """Writes the list atomically; raises :class:`DescriptorError`."""
    tables = tuple(_as_texts(entry) for entry in found.tables)
    _FORMAT.write(_Document(found.query_digest, found.columns, found.token, tables), path)


def read(
    path: StoragePath, query_digest: str, columns: Sequence[str], token: str
) -> tuple[Required, ...]:
    """The tables of the list at ``path``.

    Raises :class:`~airflow_hive_opt.documents.storage.NothingThereError` if there is no file, and
    :class:`DescriptorError` for all other failures. Among these is a list of another statement,
    other columns or another attempt.
    """
    found = _FORMAT.read(path)
    for own, expected, whose in (
        (found.query_digest, query_digest, "another statement"),
        (found.columns, tuple(columns), "other columns"),
        (found.token, token, "another attempt"),
    ):
        if own != expected:
            raise DescriptorError(f"the {_FORMAT.kind} {path} is refused: it belongs to {whose}")
    return tuple(_as_values(table) for table in found.tables)


@dataclass(frozen=True)
class _RequiredTable(Required):
    """A requirement with values as text."""

    tuples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Document:
    query_digest: str
    columns: tuple[str, ...]
    token: str
    tables: tuple[_RequiredTable, ...]


def _as_texts(entry: Required) -> _RequiredTable:
    tuples = tuple(tuple(map(str, row)) for row in entry.tuples)
    return _RequiredTable(**{**vars(entry), "tuples": tuples})


def _as_values(entry: _RequiredTable) -> Required:
    keys = KeyTuples.of(entry.columns, entry.tuples)
    tuples = keys.tuples(entry.types_of_columns, bool(entry.provider))
    return Required(**{**vars(entry), "tuples": tuples})


def _check(found: _Document) -> None:
    """Raises ``ValueError`` if the list's fields contradict each other."""
    for entry in found.tables:
        if len(entry.types) != len(entry.all_columns):
            count, columns = len(entry.types), len(entry.all_columns)
            raise ValueError(f"{entry.table} has {count} types for {columns} partition columns")
        if not set(entry.all_columns).issuperset(entry.columns):
            raise ValueError(f"{entry.table} does not have all the requested columns")
        for row in entry.tuples:
            if len(row) != len(entry.columns):
                count = len(row)
                raise ValueError(
                    f"a tuple of {entry.table} has {count} values for {len(entry.columns)} columns"
                )
        _as_values(entry)


_FORMAT = Format("list of required partitions", 3, _Document, _check)
