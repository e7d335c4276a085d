"""Merges small parts of an index, and forgets data files that the table no longer has."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index.batch import MOST_BYTES, Batch
from airflow_hive_opt.key_index.manifest import without

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.key_index.indexed_column import IndexedColumn
    from airflow_hive_opt.key_index.manifest import KeyIndex
    from airflow_hive_opt.key_index.part import Part

log = logging.getLogger(__name__)

MOST_SMALL_PARTS = 16
"""The number of small parts above which they are merged."""
_SMALL = MOST_BYTES // 4


def tidied(index: KeyIndex, column: IndexedColumn, folder: StoragePath) -> KeyIndex:
    """The index with fewer parts, if it has many small ones or twice as many files as before.

    Forgets data files that are in no snapshot of the table; one that comes back is indexed again.
    So are those of a damaged part. Raises :class:`DescriptorError` if a part can't be written.
    """
    if not index.tidied:
        return replace(index, tidied=index.files)
    are_many = sum(map(_is_small, index.parts)) > MOST_SMALL_PARTS
    if not are_many and index.files <= 2 * index.tidied:
        return index
    alive = column.paths_of_all_snapshots()
    gone, rewritten = [], []
    for part in index.parts:
        try:
            left = sum(path in alive for path in part.read_paths(folder))
        except DescriptorError:
            continue  # the builder indexes the files of such a part again
        if not left:
            gone.append(part)
        elif (are_many and _is_small(part)) or 2 * left < part.files:
            rewritten.append(part)
    merged, lost = _merged(rewritten, index.type, folder, alive)
    index = without(index, (*gone, *rewritten), by=merged)
    log.info(
        "the key index has %d parts of %d data files now: %d parts were merged, %d forgotten",
        len(index.parts),
        index.files,
        len(rewritten),
        len(gone),
    )
    snapshot_id = None if lost else index.snapshot_id
    return replace(index, tidied=max(index.files, 1), snapshot_id=snapshot_id)


def _is_small(part: Part) -> bool:
    return part.memory < _SMALL


def _merged(
    parts: Sequence[Part], type_: str, folder: StoragePath, alive: Collection[str]
) -> tuple[list[Part], bool]:
    """The parts in place of ``parts``, and whether one of these was damaged, so it is lost."""
    merged, lost = [], False
    batch = Batch(type_)
    for part in parts:
        try:
            batch.add_part(part, folder, alive)
        except DescriptorError as error:
            log.warning("indexing the data files of a part again: %s", plain(str(error)))
            lost = True
        if batch.is_full:
            merged.append(batch.write(folder))
            batch = Batch(type_)
    if batch:
        merged.append(batch.write(folder))
    return merged, lost
