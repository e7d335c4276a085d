"""Keys of data files in memory, until they become a part of the index."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index.keys import arrow_type
from airflow_hive_opt.key_index.part import Part, write_part

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_hive_opt.documents.storage import StoragePath

MOST_BYTES = 64 * 1024 * 1024
"""The size in memory at which keys become a part; sorting takes some times as much."""


class Batch:
    """Keys of data files that will be one part."""

    def __init__(self, type_: str) -> None:
        self._type = type_
        self._keys: list[pa.Array] = []
        self._files: list[pa.Array] = []
        self.paths: list[str] = []
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self.paths)

    @property
    def is_full(self) -> bool:
        """Whether the keys should become a part now."""
        return self.size >= MOST_BYTES

    def add_file(self, path: str, keys: pa.Array) -> None:
        """Adds a data file with its distinct keys."""
        import pyarrow as pa

        self._add(keys, pa.repeat(pa.scalar(len(self.paths), pa.uint32()), len(keys)))
        self.paths.append(path)

    def add_part(self, part: Part, folder: StoragePath, alive: Collection[str]) -> None:
        """Adds a part, without files that are here already or not in ``alive``.

        Raises :class:`DescriptorError` if the part is missing or damaged.
        """
        import pyarrow as pa

        paths = part.read_paths(folder)
        here = set(self.paths)
        # the position here of each of the part's files; NULL for one that is left out
        positions: list[Optional[int]] = []
        kept: list[str] = []
        for path in paths:
            is_kept = path in alive and path not in here
            positions.append(len(here) + len(kept) if is_kept else None)
            if is_kept:
                kept.append(path)
        try:
            rows = part.open_pairs(folder).read()
            files = pa.array(positions, pa.uint32()).take(rows.column("file"))
            stays = files.is_valid()
            self._add(
                rows.column("key").filter(stays).combine_chunks(),
                files.filter(stays).combine_chunks(),
            )
        except (pa.ArrowException, OSError) as error:
            raise DescriptorError(f"can't read {folder / part.pairs.name}: {error}") from error
        self.paths += kept

    def write(self, folder: StoragePath) -> Part:
        """Writes the part, once; raises :class:`DescriptorError`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        keys = pa.chunked_array(self._keys, arrow_type(self._type)).combine_chunks()
        files = pa.chunked_array(self._files, pa.uint32()).combine_chunks()
        self._keys, self._files = [], []  # they are copied, and memory is scarce
        # stable, so that the files of each key stay in ascending order
        order = pc.array_sort_indices(keys)
        keys, files = keys.take(order), files.take(order)
        del order
        return write_part(folder, keys, files, self.paths)

    def _add(self, keys: pa.Array, files: pa.Array) -> None:
        self._keys.append(keys)
        self._files.append(files)
        self.size += keys.nbytes + files.nbytes
