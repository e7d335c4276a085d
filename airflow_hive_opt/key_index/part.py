"""A part of an index: the keys of some data files, in two Parquet files that never change.

``part-<id>.parquet`` has a row for each key of each data file: ``key``, in ascending order, and
``file``, the data file's position in ``part-<id>.files.parquet``. The index's manifest has the
digest of both.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from airflow_hive_opt.documents.storage import (
    DescriptorError,
    StoragePath,
    read_bounded,
    write_atomically,
)
from airflow_hive_opt.key_index.keys import ordinal

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MOST_BYTES = 2 * 1024**3
"""The largest size of a part's file."""
ROWS_IN_GROUP = 512 * 1024  # each group has a dictionary of the files
NAME = re.compile(r"part-[0-9a-f]{32}(\.files)?\.parquet")
"""The names of a part's files."""


@dataclass(frozen=True)
class SealedFile:
    """A file in the folder of an index, which must have exactly this content; ``size`` in bytes."""

    name: str
    size: int
    sha256: str

    def read(self, folder: StoragePath) -> bytes:
        """The file's content; raises :class:`DescriptorError` if it is not what was written."""
        path = folder / self.name
        data = read_bounded(path, self.size, "a part of the key index")
        if len(data) != self.size or hashlib.sha256(data).hexdigest() != self.sha256:
            raise DescriptorError(f"{path} is not the part that the key index names: {REBUILD}")
        return data


REBUILD = "delete the index's folder, and build the index again"


@dataclass(frozen=True)
class Part:
    """The keys of some data files.

    ``keys`` is the number of pairs of a key and a data file, ``files`` that of the data files, and
    ``memory`` the size of the pairs in memory, in bytes. ``lowest`` and ``highest`` are the first
    and the last key, or the days since 1970 of a date; ``None`` for texts and for a part without
    keys.
    """

    keys: int
    files: int
    memory: int
    lowest: Optional[int]
    highest: Optional[int]
    pairs: SealedFile
    paths: SealedFile

    def read_paths(self, folder: StoragePath) -> list[str]:
        """The data files; raises :class:`DescriptorError`."""
        found = _opened(self.paths, folder).read()
        if found.column_names != ["path"] or found.num_rows != self.files:
            raise DescriptorError(f"{folder / self.paths.name} does not list {self.files} files")
        return [str(path) for path in found.column("path").to_pylist()]

    def open_pairs(self, folder: StoragePath) -> pq.ParquetFile:
        """The file of keys; raises :class:`DescriptorError`."""
        found = _opened(self.pairs, folder)
        if found.schema_arrow.names != ["key", "file"] or found.metadata.num_rows != self.keys:
            raise DescriptorError(f"{folder / self.pairs.name} does not have {self.keys} keys")
        return found


def write_part(folder: StoragePath, keys: pa.Array, files: pa.Array, paths: Sequence[str]) -> Part:
    """Writes a part; raises :class:`DescriptorError`.

    :param keys: in ascending order.
    :param files: for each key the position of its data file in ``paths``, as ``uint32``.
    """
    import pyarrow as pa

    name = f"part-{secrets.token_hex(16)}"
    is_text = pa.types.is_large_binary(keys.type)
    pairs = _written(
        pa.table({"key": keys, "file": files}),
        folder / f"{name}.parquet",
        {"key": "DELTA_BYTE_ARRAY" if is_text else "DELTA_BINARY_PACKED"},
        use_dictionary=["file"],
        dictionary_pagesize_limit=64 * 1024**2,
    )
    listed = _written(
        pa.table({"path": pa.array(paths, pa.large_string())}),
        folder / f"{name}.files.parquet",
        {"path": "DELTA_BYTE_ARRAY"},
        use_dictionary=False,
    )
    lowest = ordinal(keys[0].as_py()) if len(keys) else None
    highest = ordinal(keys[-1].as_py()) if len(keys) else None
    memory = keys.nbytes + files.nbytes
    return Part(len(keys), len(paths), memory, lowest, highest, pairs, listed)


def _written(
    table: pa.Table, path: StoragePath, encodings: dict[str, str], **options: Any
) -> SealedFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        column_encoding=encodings,
        row_group_size=ROWS_IN_GROUP,
        **options,
    )
    data = sink.getvalue().to_pybytes()
    if len(data) > MOST_BYTES:
        raise DescriptorError(f"{path} would have {len(data):,} bytes, the maximum is {MOST_BYTES}")
    write_atomically(data, path)
    return SealedFile(path.name, len(data), hashlib.sha256(data).hexdigest())


def _opened(file: SealedFile, folder: StoragePath) -> pq.ParquetFile:
    """A verified file; raises :class:`DescriptorError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(file.read(folder)))
    except (pa.ArrowException, OSError) as error:
        raise DescriptorError(f"can't read {folder / file.name}: {error}") from error
