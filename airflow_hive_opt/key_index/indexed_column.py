"""What a builder asks of a table: its data files, and the keys in one of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class IndexingError(Exception):
    """An index can't be built; the message says of which table, why, and what to do."""


class NotIndexable(IndexingError):
    """The column can't have an index, however often it is tried."""


class LeftOut(Exception):
    """A data file can't be covered, so every scan reads it; the message says why."""


@dataclass(frozen=True)
class DataFile:
    """A data file: its path as the table's metadata has it, and its number of rows.

    ``left_out`` says why the metadata alone excludes it from the index; empty if it does not.
    """

    path: str
    rows: int
    left_out: str = ""


class IndexedColumn(Protocol):
    """A column of a table at one snapshot.

    ``table_uuid`` and ``field_id`` stay the same if the table or the column gets another name. For
    Delta, ``table_uuid`` is the table's ID, ``field_id`` the column's name in the data files, and
    ``snapshot_id`` the version.
    """

    table_uuid: str
    table: str
    field_id: str
    column: str
    type: str
    snapshot_id: Optional[int]

    @property
    def why_unused(self) -> str:
        """Why no statement can use the index yet; empty if one can."""

    def files(self, since: Optional[int]) -> Sequence[DataFile]:
        """The data files of the snapshot, at least those that the snapshot ``since`` lacked."""

    def paths_of_all_snapshots(self) -> Collection[str]:
        """The paths of the data files of all snapshots that the table still has."""

    def keys_of(self, path: str) -> pa.Array:
        """The distinct keys of a data file, without NULL, in the type of :mod:`keys`.

        Other threads call this too. Raises :class:`LeftOut`, and errors of the storage.
        """


def in_words(error: Exception) -> str:
    r"""The first line of an error's text, else its class.

    >>> in_words(ValueError("no\nanswer")), in_words(KeyError())
    ('no', 'KeyError')
    """
    return str(error).strip().partition("\n")[0] or type(error).__name__
