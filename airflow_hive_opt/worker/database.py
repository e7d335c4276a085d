"""A DuckDB database in memory for one query."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from threading import Timer
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.worker.translation.typed import identifier
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# It reads no file and loads no extension. One thread: the worker has other tasks.
_CONFIG: dict[str, Any] = {
    "threads": 1,
    "memory_limit": "128MB",
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

_HIDE_OVERFLOWS = ("expression_rewriter", "sum_rewriter")
"""Optimizers that make ``k < 5 - 9`` of ``k + 9 < 5``, and ``sum(b) < 0`` of
``CAST(sum(b) AS BIGINT) < 0``. Then an overflow is no error, while Spark may go on with another
number."""
_MOST_SECONDS = 30


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an empty database, for the block; its errors become ``Unanswered``."""
    import duckdb

    try:
        with duckdb.connect(":memory:", config=_CONFIG) as connection:
            known = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
            hiding = ",".join(name for (name,) in known if name in _HIDE_OVERFLOWS)
            connection.execute(f"SET disabled_optimizers = '{hiding}'")
            clock = Timer(_MOST_SECONDS, connection.interrupt)
            clock.daemon = True
            clock.start()
            try:
                yield connection
            finally:
                clock.cancel()
    except duckdb.Error as error:
        raise Unanswered(f"DuckDB fails: {error}") from error


def load(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, selected: str) -> None:
    """Loads the rows into a table; ``selected`` has its columns as SQL over the rows' columns.

    DuckDB gets them as a stream in Arrow's C interface: for a table of PyArrow's, it would load
    pandas, which takes a quarter of a second, and would pass filters on to PyArrow.
    """
    connection.register("arrow_rows", rows.__arrow_c_stream__())
    connection.execute(f"CREATE TABLE {identifier(name)} AS SELECT {selected} FROM arrow_rows")
    connection.unregister("arrow_rows")


def texts(values: Sequence[str | None]) -> pa.Array:
    """An Arrow array of texts, made of its buffers: ``pyarrow.array`` would load pandas."""
    import pyarrow as pa

    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = array("i", accumulate(map(len, encoded), initial=0))
    known = bytearray((len(values) + 7) // 8)
    for at, value in enumerate(values):
        if value is not None:
            known[at // 8] |= 1 << at % 8
    buffers = [pa.py_buffer(bytes(known)), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)
