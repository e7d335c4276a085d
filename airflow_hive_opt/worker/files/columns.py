"""Finds the columns of a file by name, and converts them to the types of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    import pyarrow as pa

FileColumns: TypeAlias = "tuple[Mapping[str, pa.ChunkedArray], int]"
"""Columns of a file by their names in the table, and its number of rows."""


def position(names: Sequence[str], name: str) -> int | None:
    """The position of the column with this name, ignoring case; ``None`` if it is not there.

    ``name`` is in lower case. Raises ``Unanswered`` if several columns have the name.

    >>> position(["ID", "name"], "id"), position(["a"], "b")
    (0, None)
    """
    found = [at for at, each in enumerate(names) if each.lower() == name]
    if len(found) > 1:
        raise Unanswered(f"a file has several columns named {name}")
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


def gathered(
    parts: Iterable[Mapping[str, pa.Array]], types: Mapping[str, SqlType], most: int
) -> Mapping[str, pa.ChunkedArray]:
    """Joins the parts of a file's columns into columns of ``types``.

    A small file may have values of any size, as equal ones need no space in it. So this raises
    :class:`Unanswered` once they take more than ``most`` bytes of memory.
    """
    import pyarrow as pa

    found: dict[str, list[pa.Array]] = {name: [] for name in types}
    room = most
    for part in parts:
        for name, type_ in types.items():
            values = part[name].cast(arrow_type(type_))
            room -= values.nbytes
            found[name].append(values)
        check_room(room)
    return {name: pa.chunked_array(found[name], arrow_type(types[name])) for name in types}


def check_room(room: int) -> None:
    """Raises :class:`Unanswered` if fewer than 0 bytes of memory are left for rows."""
    if room < 0:
        raise Unanswered("the rows of a small table take too much memory")
