"""Reads columns of an ORC file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.worker.files.columns import FileColumns, arrow_type, gathered, position
from airflow_hive_opt.worker.types import STRING, SqlType
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    import pyarrow as pa


def read_orc(
    file: Any, wanted: Mapping[str, SqlType], names: Sequence[str], most: int
) -> FileColumns:
    """The columns of ``wanted`` that the file has, and its number of rows.

    ``names`` are all data columns of the table, ``most`` is the maximum number of bytes in memory.
    A setting says whether columns are found by their names or by their positions, so both must
    agree.
    """
    import pyarrow.compute as pc
    import pyarrow.orc as orc

    found = orc.ORCFile(file)
    fields = found.schema
    physical: dict[str, int] = {}
    for name, type_ in wanted.items():
        at, expected = position(fields.names, name), names.index(name)
        if at is None and expected >= len(fields):
            continue
        if at != expected:
            raise Unanswered(f"the column {name} has another position in the table than in a file")
        if not _readable(fields.field(at).type, type_):
            raise Unanswered(f"the column {name} has another type in the table than in a file")
        physical[name] = at
    count = int(found.nrows)
    if not physical:
        return {}, count
    read = {name: fields.field(at).name for name, at in physical.items()}
    stripes = (found.read_stripe(at, columns=list(read.values())) for at in range(found.nstripes))
    parts = ({name: stripe.column(own) for name, own in read.items()} for stripe in stripes)
    columns = gathered(parts, {name: wanted[name] for name in physical}, most)
    for name, values in columns.items():
        if wanted[name] == STRING and pc.any(pc.ends_with(values, " ")).as_py():
            # a CHAR of the file, whose type PyArrow does not tell; Spark removes the padding
            raise Unanswered(f"a text of the column {name} ends in a space, which may be padding")
    return columns, count


def _readable(stored: pa.DataType, type_: SqlType) -> bool:
    import pyarrow as pa

    expected = arrow_type(type_)
    if type_.is_integer:
        signed = pa.types.is_signed_integer(stored)
        return bool(signed and stored.bit_width <= expected.bit_width)
    return bool(stored == expected)
