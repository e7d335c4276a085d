"""Reads columns of an ORC file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.worker.files.columns import FileColumns, arrow_type, position
from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    import pyarrow as pa


def read_orc(file: Any, wanted: Mapping[str, SqlType], names: Sequence[str]) -> FileColumns:
    """The columns of ``wanted`` that the file has, and its number of rows.

    ``names`` are all data columns of the table. A setting says whether columns are found by their
    names or by their positions, so both must agree.
    """
    import pyarrow.orc as orc

    found = orc.ORCFile(file)
    fields = found.schema
    physical: dict[str, int] = {}
    for name, type_ in wanted.items():
        at, expected = position(fields.names, name), names.index(name)
        if at is None and expected >= len(fields):
            continue
        if at != expected:
            raise Unanswered(f"the column {name} has another position in an ORC file")
        if not _readable(fields.field(at).type, type_):
            raise Unanswered(f"the column {name} has another type in an ORC file")
        physical[name] = at
    count = int(found.nrows)
    if not physical:
        return {}, count
    table = found.read(columns=[fields.field(at).name for at in physical.values()])
    columns = {
        name: table.column(fields.field(at).name).cast(arrow_type(wanted[name]))
        for name, at in physical.items()
    }
    return columns, count


def _readable(stored: pa.DataType, type_: SqlType) -> bool:
    import pyarrow as pa

    expected = arrow_type(type_)
    if type_.is_integer:
        signed = pa.types.is_signed_integer(stored)
        return bool(signed and stored.bit_width <= expected.bit_width)
    return bool(stored == expected)
