"""The data files that hold some keys, by an index."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index.keys import as_array, has_between, ordinal
from airflow_hive_opt.key_index.manifest import folder_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.key_index.manifest import KeyIndex
    from airflow_hive_opt.key_index.part import Part

# So many parts are in memory at the same time.
_THREADS = 4
# A search for a key takes about as long as a look at so many keys.
_SEARCH = 64


@dataclass(frozen=True)
class FoundFiles:
    """What an index says about some keys; the paths are those of the table's own metadata.

    - ``holding`` are the covered data files that hold at least one of the keys.
    - ``covered`` are all data files that the index knows. All others must be read.
    """

    holding: frozenset[str]
    covered: frozenset[str]


def files_holding(
    root: StoragePath, index: KeyIndex, keys: Sequence[Union[int, str, date]]
) -> FoundFiles:
    """The data files that hold at least one of the keys.

    :param root: the configured ``index_path``.
    :param keys: values of the column's type, without NULL: ``int``, ``str`` or ``date``.

    Raises :class:`DescriptorError` for a key of another type, and for a part that is missing or
    damaged. Then all files of the table must be read.
    """
    folder = folder_of(root, index.table_uuid, index.field_id)
    wanted = as_array(keys, index.type)
    ascending = wanted.to_pylist()
    ordinals = [ordinal(key) for key in ascending]

    def looked_up(part: Part) -> tuple[list[str], set[int]]:
        paths = part.read_paths(folder)
        if part.lowest is not None and not has_between(ordinals, part.lowest, part.highest):
            return paths, set()
        return paths, _positions(part.open_pairs(folder), wanted, ascending, ordinals)

    holding: set[str] = set()
    covered: set[str] = set()
    with ThreadPoolExecutor(_THREADS, "key-index") as threads:
        for paths, positions in threads.map(looked_up, index.parts):
            covered.update(paths)
            if positions and max(positions) >= len(paths):
                raise DescriptorError(f"a part of {folder} names a file that it does not list")
            holding.update(paths[at] for at in positions)
    return FoundFiles(frozenset(holding), frozenset(covered))


def _positions(
    pairs: pq.ParquetFile,
    wanted: pa.Array,
    ascending: Sequence[Any],
    ordinals: Sequence[Optional[int]],
) -> set[int]:
    """The positions of the data files that hold a key; raises :class:`DescriptorError`."""
    import pyarrow as pa

    found: set[int] = set()
    try:
        for group in range(pairs.metadata.num_row_groups):
            ends = pairs.metadata.row_group(group).column(0).statistics
            if (
                ends is not None
                and ends.has_min_max
                and not has_between(ascending, ends.min, ends.max)
            ):
                continue
            rows = pairs.read_row_group(group, use_threads=False)
            found.update(_files_in(rows, wanted, ordinals))
    except (pa.ArrowException, OSError, TypeError) as error:
        raise DescriptorError(f"can't read a part of the key index: {error}") from error
    return found


def _files_in(rows: pa.Table, wanted: pa.Array, ordinals: Sequence[Any]) -> set[int]:
    """The positions of the data files in the rows of the wanted keys, which are in order too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held, files = (rows.column(name).combine_chunks() for name in ("key", "file"))
    if (held.type, files.type) != (wanted.type, pa.uint32()) or held.null_count or files.null_count:
        raise TypeError(
            f"its keys are of the type {held.type}, not {wanted.type}, or some are NULL"
        )
    if pa.types.is_large_binary(held.type) or len(wanted) * _SEARCH >= len(held):
        return set(pc.unique(files.filter(pc.is_in(held, wanted))).to_pylist())
    keys, positions = _view(held), _view(files)
    found: set[int] = set()
    at = 0
    for key in ordinals[bisect_left(ordinals, keys[0]) : bisect_right(ordinals, keys[-1])]:
        at = bisect_left(keys, key, at)
        found.update(positions[at : bisect_right(keys, key, at)])
    return found


def _view(array: pa.Array) -> memoryview[int]:
    """The numbers of an array without NULL, of a type with 32 or 64 bits, and days of dates."""
    import pyarrow as pa

    form: Literal["I", "q", "i"] = "i"
    if pa.types.is_uint32(array.type):
        form = "I"
    elif pa.types.is_int64(array.type):
        form = "q"
    whole = memoryview(array.buffers()[1]).cast(form)
    return whole[array.offset : array.offset + len(array)]
