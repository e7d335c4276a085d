"""Builds an index, or brings it up to date: reads the data files that no part covers.

Parts are written first, under names of their own, and the manifest after each of them. So readers
always see a whole index, and a builder that is killed loses at most one part. Of two builders at
the same time, the last one's manifest stays, and what the other one has read is read again later.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Optional, Union

from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index.batch import Batch
from airflow_hive_opt.key_index.indexed_column import (
    DataFile,
    IndexedColumn,
    IndexingError,
    LeftOut,
    in_words,
)
from airflow_hive_opt.key_index.manifest import (
    KeyIndex,
    folder_of,
    read_index,
    without,
    write_index,
)
from airflow_hive_opt.key_index.stored_parts import StoredParts
from airflow_hive_opt.key_index.tidying import tidied
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)

THREADS = 8
# The keys of so many rows are in memory at the same time, before they are in a part.
_ROWS_AHEAD = 4_000_000


@dataclass(frozen=True)
class Built:
    """What a builder has done. Sizes are in bytes, ``seconds`` its time.

    ``new_files`` and ``new_keys`` are what it has read; a key counts once for each data file.
    ``left_out`` has the number of data files that can't be covered, by reason. The other figures
    are those of the whole index.
    """

    new_files: int
    new_keys: int
    left_out: Mapping[str, int]
    files: int
    keys: int
    parts: int
    bytes: int
    seconds: float

    def headline(self, table: str, column: str) -> str:
        """The figures as one line of a log."""
        left_out = "; ".join(f"{number:,} left out: {why}" for why, number in self.left_out.items())
        return (
            f"the index of {column} of {table} covers {self.files:,} data files with {self.keys:,} "
            f"keys, in {self.bytes:,} bytes: {self.new_files:,} files with {self.new_keys:,} keys "
            f"were added in {self.seconds:.1f} s{left_out and f'; {left_out}'}"
        )

    def summary(self) -> dict[str, Any]:
        """The figures for XCom."""
        per_key = round(self.bytes / self.keys, 3) if self.keys else None
        return {**vars(self), "left_out": dict(self.left_out), "bytes_per_key": per_key}


def build(
    root: StoragePath, column: IndexedColumn, rebuild: bool = False, threads: int = THREADS
) -> Built:
    """Brings the index of a column up to date with the table's current snapshot.

    :param root: the configured ``index_path``.
    :param rebuild: read all files again, also those that the index covers.
    :param threads: how many data files are read at the same time.

    Raises :class:`IndexingError` if a data file can't be read, and :class:`DescriptorError` if the
    index can't be written. All parts that are finished stay.
    """
    return _Builder(root, column, threads).build(rebuild)


class _Builder:
    def __init__(self, root: StoragePath, column: IndexedColumn, threads: int) -> None:
        self._root = root
        self._column = column
        self._threads = threads
        self._stored = StoredParts(folder_of(root, column.table_uuid, column.field_id))
        self._left_out: Counter[str] = Counter()
        self._new_files = self._new_keys = 0

    def build(self, rebuild: bool) -> Built:
        started = time.perf_counter()
        before = self._stored_index()
        index = self._to_extend(before, rebuild)
        index = tidied(index, self._column, self._stored.folder)
        covered, index = self._stored.covered(index)
        for batch in self._batches(covered, index.snapshot_id):
            part = batch.write(self._stored.folder)
            self._new_files += part.files
            self._new_keys += part.keys
            index = replace(index, parts=(*index.parts, part))
            write_index(self._root, index)
        index = self._stored.cleaned(replace(index, **self._described()))
        if index != before:
            write_index(self._root, index)
        return Built(
            self._new_files,
            self._new_keys,
            dict(self._left_out),
            index.files,
            index.keys,
            len(index.parts),
            index.size,
            round(time.perf_counter() - started, 3),
        )

    def _described(self) -> dict[str, Any]:
        """The fields of the index that come from the column."""
        names = ("table", "column", "type", "snapshot_id")
        return {name: getattr(self._column, name) for name in names}

    def _stored_index(self) -> Optional[KeyIndex]:
        """The index as it is; ``None`` if there is none, or none that can be read."""
        try:
            return read_index(self._root, self._column.table_uuid, self._column.field_id)
        except DescriptorError as error:
            log.warning("building the key index anew: %s", plain(str(error)))
            return None

    def _to_extend(self, found: Optional[KeyIndex], rebuild: bool) -> KeyIndex:
        """The index whose parts are kept: an empty one if there is none, or of another type."""
        column = self._column
        if found is None:
            of_table = column.table_uuid, column.table
            return KeyIndex(*of_table, column.field_id, column.column, column.type, ())
        if rebuild or family(found.type) != family(column.type):
            emptied = without(found, found.parts)
            return replace(emptied, type=column.type, snapshot_id=None, tidied=0)
        return found

    def _batches(self, covered: set[str], since: Optional[int]) -> Iterator[Batch]:
        batch = Batch(self._column.type)
        for path, keys in self._keys_of_new_files(covered, since):
            batch.add_file(path, keys)
            if batch.is_full:
                yield batch
                batch = Batch(self._column.type)
        if batch:
            yield batch

    def _keys_of_new_files(
        self, covered: set[str], since: Optional[int]
    ) -> Iterator[tuple[str, pa.Array]]:
        """The distinct keys of each data file that is not covered, in the order of the files."""
        new = {file.path: file for file in self._column.files(since) if file.path not in covered}
        for file in new.values():
            if file.left_out:
                self._left_out[file.left_out] += 1
        readable = [file for file in new.values() if not file.left_out]
        for file, keys in self._read(readable):
            if isinstance(keys, LeftOut):
                self._left_out[str(keys)] += 1
            else:
                yield file.path, keys

    def _read(
        self, files: Sequence[DataFile]
    ) -> Iterator[tuple[DataFile, Union[pa.Array, LeftOut]]]:
        """Reads files by threads, but only as far ahead as memory allows."""
        waiting: deque[tuple[DataFile, Future[Union[pa.Array, LeftOut]]]] = deque()
        rows = 0
        with ThreadPoolExecutor(self._threads, "key-index") as threads:
            try:
                for file in files:
                    while waiting and (
                        rows + file.rows > _ROWS_AHEAD or len(waiting) >= 4 * self._threads
                    ):
                        done, keys = waiting.popleft()
                        rows -= done.rows
                        yield done, keys.result()
                    waiting.append((file, threads.submit(self._keys_of, file)))
                    rows += file.rows
                while waiting:
                    done, keys = waiting.popleft()
                    yield done, keys.result()
            finally:
                for _, keys in waiting:
                    keys.cancel()

    def _keys_of(self, file: DataFile) -> Union[pa.Array, LeftOut]:
        try:
            return self._column.keys_of(file.path)
        except LeftOut as why:
            return why
        except Exception as error:  # of PyArrow, of the storage's driver
            place = f"{file.path} of {self._column.table}"
            raise IndexingError(f"can't read {place}: {in_words(error)}") from error
