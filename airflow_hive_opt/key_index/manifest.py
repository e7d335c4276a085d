"""The manifest of an index: its table, its column and its parts.

It is a document as in :mod:`~airflow_hive_opt.documents.format`, in the index's own folder
``<index_path>/<table's UUID>/<ID of the field>/``. The last builder's manifest replaces the
one before.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Optional
from urllib.parse import quote, unquote

from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError, StoragePath
from airflow_hive_opt.key_index.keys import is_indexable
from airflow_hive_opt.key_index.part import MOST_BYTES, NAME, REBUILD, Part, SealedFile

MANIFEST = "manifest.json"
# A UUID is a part of a path, so nothing else may be in it.
_UUID = re.compile(r"[0-9A-Za-z-]{1,64}")
_LONGEST = 200  # bytes of a folder's name


@dataclass(frozen=True)
class Retired:
    """A file that no part uses any more, and since when, in seconds since 1970."""

    name: str
    since: float


@dataclass(frozen=True)
class KeyIndex:
    """The index of one column of one table.

    - ``table`` and ``column`` are their names when the index was built; ``table_uuid`` and
      ``field_id`` are what counts.
    - ``type`` is Spark's name of the column's type, in lower case.
    - ``snapshot_id`` is the newest snapshot of which all files are covered that can be. ``None``
      means that all files must be looked through.
    - ``tidied`` is the number of covered files after the last builder that looked for files that
      the table no longer has.
    - ``retired`` are the files that a reader of an earlier manifest may still need.
    """

    table_uuid: str
    table: str
    field_id: str
    column: str
    type: str
    parts: tuple[Part, ...]
    snapshot_id: Optional[int] = None
    tidied: int = 0
    retired: tuple[Retired, ...] = ()

    @property
    def files(self) -> int:
        """The number of covered data files; one that two parts cover counts twice."""
        return sum(part.files for part in self.parts)

    @property
    def keys(self) -> int:
        """The number of pairs of a key and a data file."""
        return sum(part.keys for part in self.parts)

    @property
    def size(self) -> int:
        """The size of all parts, in bytes."""
        return sum(part.pairs.size + part.paths.size for part in self.parts)


def folder_of(root: StoragePath, table_uuid: str, field_id: str) -> StoragePath:
    """The folder of an index; raises :class:`DescriptorError` for names that no folder can have."""
    if not _UUID.fullmatch(table_uuid):
        raise DescriptorError(f"{table_uuid[:50]!a} is no UUID of a table")
    name = quote(field_id, safe="")
    if not name.strip(".") or len(name) > _LONGEST:
        raise DescriptorError(f"the column {field_id[:50]!a} can't have an index: rename it")
    return root / table_uuid / name


def field_ids_in(root: StoragePath, table_uuid: str) -> frozenset[str]:
    """The columns of a table that may have an index; raises errors of the storage."""
    try:
        return frozenset(unquote(each.name) for each in (root / table_uuid).iterdir())
    except FileNotFoundError:
        return frozenset()


def has_index(root: StoragePath, table_uuid: str) -> bool:
    """Whether a column of a table may have an index; raises errors of the storage."""
    return bool(field_ids_in(root, table_uuid))


def read_index(root: StoragePath, table_uuid: str, field_id: str) -> Optional[KeyIndex]:
    """The index of a column, or ``None`` if there is none.

    :param root: the configured ``index_path``.

    Raises :class:`DescriptorError` for a manifest that is damaged, or of another version, table or
    column.
    """
    path = folder_of(root, table_uuid, field_id) / MANIFEST
    try:
        found = _FORMAT.read(path)
    except NothingThereError:
        return None
    except DescriptorError as error:
        raise DescriptorError(f"{error}. {REBUILD.capitalize()}") from error
    if (found.table_uuid, found.field_id) != (table_uuid, field_id):
        raise DescriptorError(
            f"the key index {path} belongs to the column {found.field_id} of the table "
            f"{found.table_uuid}. {REBUILD.capitalize()}"
        )
    return found


def folders_of_indexes(root: StoragePath) -> list[StoragePath]:
    """The folders that have an index's manifest, sorted; raises errors of the storage."""
    return sorted((path.parent for path in root.glob(f"*/*/{MANIFEST}")), key=str)


def write_index(root: StoragePath, index: KeyIndex) -> None:
    """Replaces the manifest; raises :class:`DescriptorError`."""
    _FORMAT.write(index, folder_of(root, index.table_uuid, index.field_id) / MANIFEST)


def without(index: KeyIndex, parts: Collection[Part], by: Collection[Part] = ()) -> KeyIndex:
    """The index with ``by`` in place of some parts, whose files will be removed in a day."""
    now = time.time()
    names = (file.name for part in parts for file in (part.pairs, part.paths))
    return replace(
        index,
        parts=(*(part for part in index.parts if part not in parts), *by),
        retired=(*index.retired, *(Retired(name, now) for name in names)),
    )


def _check(index: KeyIndex) -> None:
    """Raises ``ValueError`` if the manifest's fields are not possible."""
    if not is_indexable(index.type):
        raise ValueError(f"keys have the type {index.type[:50]!a}")
    for part in index.parts:
        for file in (part.pairs, part.paths):
            _check_file(file)
        if min(part.keys, part.files, part.memory) < 0:
            raise ValueError("a part has fewer than 0 keys, files or bytes")
        if (part.lowest is None) != (part.highest is None):
            raise ValueError("a part has one end of its keys only")
    for retired in index.retired:
        _check_name(retired.name)


def _check_file(file: SealedFile) -> None:
    _check_name(file.name)
    if not 0 <= file.size <= MOST_BYTES:
        raise ValueError(f"the file of a part has {file.size} bytes")


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(f"a part is in the file {name[:50]!a}")


_FORMAT = Format("key index", 3, KeyIndex, _check)
