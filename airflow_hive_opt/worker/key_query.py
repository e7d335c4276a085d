"""Runs the key queries of a statement (HIVE-5119, step 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.worker.database import database
from airflow_hive_opt.worker.keys import Keys
from airflow_hive_opt.worker.tables import Tables
from airflow_hive_opt.worker.translation.translate import Translation, is_stable, translate
from airflow_hive_opt.worker.types import DATE, STRING
from airflow_hive_opt.worker.unanswered import Unanswered

MOST_BYTES_OF_A_KEY = 16 << 10
"""Bytes. No partition value is longer.

Longer keys are not ignored, because a condition may use only the beginning of a key.
"""


def collect(
    source: KeySource, tables: Tables, bounds: KeyBounds, parameters: Mapping[str, object]
) -> Keys | Reason:
    """The keys of ``source``, or the reason why they can't be used; raises :class:`Unanswered`."""
    if not is_stable(source.sql):
        return Reason.KEY_SOURCE_NOT_DETERMINISTIC
    tables = replace(tables, skeletons=dict(source.skeletons))
    found = translated(source, tables, parameters)
    names = [f"c{at}" for at in range(len(found.types))]
    listed = ", ".join(names)
    sizes = [
        f"coalesce(octet_length(encode({name})), 0)"
        for name, type_ in zip(names, found.types, strict=True)
        if type_ == STRING
    ]
    counted = f"SELECT {listed}, count(*) AS n FROM ({found.sql}) GROUP BY {listed}"
    with database() as connection:
        tables.load(connection, found.used)
        most = bounds.max_keys + 1
        connection.execute(f"CREATE TABLE keys AS SELECT * FROM ({counted}) LIMIT {most}")
        count = connection.execute("SELECT count(*) FROM keys").fetchone()
        if count is not None and count[0] > bounds.max_keys:
            return _too_much(Reason.TOO_MANY_KEYS, found.left_out)
        if sizes:
            measured = (
                f"SELECT max(greatest({', '.join(sizes)})), sum({' + '.join(sizes)}) FROM keys"
            )
            longest, total = connection.execute(measured).fetchone() or (0, 0)
            if (longest or 0) > MOST_BYTES_OF_A_KEY or (total or 0) > bounds.max_key_bytes:
                return _too_much(Reason.KEYS_TOO_LARGE, found.left_out)
        rows = connection.execute("SELECT * FROM keys").fetchall()
    dates = [at for at, type_ in enumerate(found.types) if type_ == DATE]
    if any(not isinstance(row[at], (date, type(None))) for row in rows for at in dates):
        raise Unanswered("a key is a date that Python can't represent")
    return Keys(
        source,
        tuple(row[:-1] for row in rows),
        tuple(row[-1] for row in rows),
        found.types,
        exact=not found.left_out,
        functions=found.functions,
    )


def translated(source: KeySource, tables: Tables, parameters: Mapping[str, object]) -> Translation:
    """The key query in DuckDB's SQL, for a row of the source each; raises :class:`Unanswered`."""
    rows_sql = source.sql.replace("SELECT DISTINCT ", "SELECT ", 1)
    return translate(rows_sql, tables.source, parameters)


def _too_much(reason: Reason, left_out: Sequence[str]) -> Reason:
    """Returns ``reason``; raises :class:`Unanswered` if left-out conditions may exclude keys."""
    if left_out:
        raise Unanswered(f"{reason}, because the worker does not support {left_out[0]}")
    return reason
