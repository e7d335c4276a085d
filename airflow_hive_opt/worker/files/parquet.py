"""Reads columns of a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_hive_opt.worker.files.columns import FileColumns, gathered, position
from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import Unanswered

_INTEGERS = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}


def read_parquet(file: Any, wanted: Mapping[str, SqlType], most: int) -> FileColumns:
    """The columns of ``wanted`` that the file has, and its number of rows.

    Raises :class:`Unanswered` for a column whose physical type Spark reads in another way, and for
    columns of more than ``most`` bytes in memory.
    """
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    top = parquet.schema_arrow.names
    leaves = [parquet.schema.column(at) for at in range(len(parquet.schema))]
    by_path = {leaf.path: leaf for leaf in leaves}
    physical: dict[str, str] = {}
    for name, type_ in wanted.items():
        at = position(top, name)
        if at is None:
            continue
        leaf = by_path.get(top[at])
        if leaf is None or "." in leaf.path or leaf.max_repetition_level:
            raise Unanswered(f"the column {name} is nested or repeated in a Parquet file")
        if not _readable(leaf, type_):
            raise Unanswered(f"the column {name} has another type in the table than in a file")
        physical[name] = leaf.path
    count = int(parquet.metadata.num_rows)
    if not physical:
        return {}, count
    batches = parquet.iter_batches(columns=list(physical.values()), use_threads=False)
    parts = ({name: batch.column(path) for name, path in physical.items()} for batch in batches)
    return gathered(parts, {name: wanted[name] for name in physical}, most), count


def _readable(leaf: Any, type_: SqlType) -> bool:
    """Whether a column of the file has the type, or an integer type that fits into it."""
    logical = leaf.logical_type.type
    if type_.is_integer:
        if leaf.physical_type not in ("INT32", "INT64"):
            return False
        if logical == "NONE":
            stored = "int" if leaf.physical_type == "INT32" else "bigint"
        elif logical == "INT" and "isSigned=true" in str(leaf.logical_type):
            width = str(leaf.logical_type).partition("bitWidth=")[2].partition(",")[0]
            stored = _INTEGERS[int(width)]
        else:
            return False
        # a file has no physical type for less than 32 bits; values are checked when they are cast
        return not (stored == "bigint" and type_.name != "bigint")
    if type_.is_decimal:
        same = (leaf.precision, leaf.scale) == (type_.precision, type_.scale)
        return logical == "DECIMAL" and same
    expected = {
        "string": ("BYTE_ARRAY", "STRING"),
        "date": ("INT32", "DATE"),
        "boolean": ("BOOLEAN", "NONE"),
    }
    return expected.get(type_.name) == (leaf.physical_type, logical)
