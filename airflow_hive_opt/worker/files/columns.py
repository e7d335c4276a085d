"""The columns of a file: by which names they are found, and as which types they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    import pyarrow as pa

FileColumns: TypeAlias = "tuple[Mapping[str, pa.ChunkedArray], int]"
"""Columns of a file by their names in the table, and its number of rows."""


def position(names: Sequence[str], name: str) -> int | None:
    """The position of a column by its name in any case; ``None`` if it is not there.

    >>> position(["ID", "name"], "id"), position(["a"], "b")
    (0, None)
    """
    found = [at for at, each in enumerate(names) if each.lower() == name]
    if len(found) > 1:
        raise Unanswered(f"a file has several columns {name}")
    return found[0] if found else None


def arrow_type(type_: SqlType) -> pa.DataType:
    """Arrow's type for values of the type."""
    import pyarrow as pa

    if type_.is_decimal:
        return pa.decimal128(type_.precision, type_.scale)
    return {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "string": pa.string(),
        "date": pa.date32(),
        "boolean": pa.bool_(),
    }[type_.name]
