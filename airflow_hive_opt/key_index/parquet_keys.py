"""The keys of one column of a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable, Optional

from airflow_hive_opt.key_index.indexed_column import LeftOut
from airflow_hive_opt.key_index.keys import arrow_type
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 128 * 1024
# Arrow's types of texts; some are of what another program has noted in the file.
_TEXTS = frozenset({"string", "large_string", "string_view", "binary"})


def keys_in(
    source: Any, type_: str, name_in: Callable[[pq.ParquetFile], Optional[str]]
) -> pa.Array:
    """The distinct keys of a column, without NULL.

    :param source: the opened file.
    :param type_: Spark's name of the column's type.
    :param name_in: gives the column's name in the file; ``None`` if all its values are NULL.

    Raises :class:`~airflow_hive_opt.key_index.indexed_column.LeftOut`, and errors of PyArrow and of
    the storage.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(source, pre_buffer=True)
        name = name_in(file)
        found = pa.array([], arrow_type(type_))
        more: list[pa.Array] = []
        for values in () if name is None else _values(file, name):
            more.append(_converted(values, type_))
            if sum(map(len, more)) > len(found):  # so each key is compared a few times at most
                found, more = _distinct([found, *more]), []
        return _distinct([found, *more])
    except OSError as error:
        if "decrypt" in str(error):  # PyArrow has no class of its own for it
            raise LeftOut("it is encrypted") from error
        raise


def _values(file: pq.ParquetFile, name: str) -> Iterator[pa.Array]:
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[name], use_threads=False):
        yield batch.column(name)


def _converted(values: pa.Array, type_: str) -> pa.Array:
    """The values as keys; raises :class:`LeftOut` if a file has the column in another type."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_of = {
        "integer": pa.types.is_signed_integer,
        "date": pa.types.is_date32,
        "string": lambda each: str(each) in _TEXTS,
    }[family(type_) or ""]
    if not is_of(values.type):
        raise LeftOut(f"its column has the type {values.type}, not {type_}")
    return values.cast(arrow_type(type_))


def _distinct(arrays: list[pa.Array]) -> pa.Array:
    import pyarrow as pa

    return pa.chunked_array(arrays).unique().drop_null()
