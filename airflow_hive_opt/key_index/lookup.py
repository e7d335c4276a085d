"""The data files that hold some keys, by an index."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Union

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
        return paths, _positions(part.open_pairs(folder), wanted, ascending)

    holding: set[str] = set()
    covered: set[str] = set()
    with ThreadPoolExecutor(_THREADS, "key-index") as threads:
        for paths, positions in threads.map(looked_up, index.parts):
            covered.update(paths)
            if positions and max(positions) >= len(paths):
                raise DescriptorError(f"a part of {folder} names a file that it does not list")
            holding.update(paths[at] for at in positions)
    return FoundFiles(frozenset(holding), frozenset(covered))


def _positions(pairs: pq.ParquetFile, wanted: pa.Array, ascending: Sequence[Any]) -> set[int]:
    """The positions of the data files that hold a key; raises :class:`DescriptorError`."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
            held = rows.column("file").filter(pc.is_in(rows.column("key"), wanted))
            found.update(pc.unique(held).to_pylist())
    except (pa.ArrowException, OSError, TypeError) as error:
        raise DescriptorError(f"can't read a part of the key index: {error}") from error
    return found
