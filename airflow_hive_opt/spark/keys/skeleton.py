"""Partition names as a relation, so that Spark itself evaluates conditions on them.

The skeleton of a table has one row for every partition and only the partition columns, with the
types of a scan. Subqueries around the scan in the statement are repeated around the skeleton, so
that a condition needs no change of its text. The names are local data: Spark lists and reads no
files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import (
    Layer,
)
from airflow_hive_opt.restriction.literals import literal
from airflow_hive_opt.spark.keys.key_set import Keys
from airflow_hive_opt.spark.keys.local_rows import LocalRows
from airflow_hive_opt.spark.keys.stability import is_stable
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Spark reads this number of names from the SQL text faster than it runs a job for them.
_NAMES_IN_THE_SQL = 1000


def unique_view(name: str) -> str:
    """A name for a temporary view that no other run in the session uses."""
    return f"{name}_{uuid4().hex}"


@contextmanager
def skeleton_view(
    session: SparkSession, name: str, table: Table, partitions: Sequence[Partition]
) -> Iterator[None]:
    """A temporary view of the partitions, for the block.

    It has the partition columns and two more. ``__row`` is the position in ``partitions``.
    ``__odd`` is true if the name does not determine the value that a scan reads: a text that can't
    be read as its column's type, and the NULL partition of a table that a serde reads.
    """
    frame = _texts(session, partitions)
    typed = [
        (f"__texts[{number}]", f"try_cast(__texts[{number}] AS {column.type})", quote(column.name))
        for number, column in enumerate(table.partition_columns)
    ]
    known = "true" if table.by_serde else "{} IS NOT NULL"
    odd = " OR ".join(f"({known.format(text)} AND {value} IS NULL)" for text, value, _ in typed)
    values = [f"{value} AS {column}" for _, value, column in typed]
    frame = frame.selectExpr("__row", f"{odd} AS __odd", *values)
    frame.createOrReplaceTempView(quote(name))
    try:
        yield
    finally:
        session.catalog.dropTempView(name)


def _texts(session: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
    """The partitions' positions and values as local data: ``__row``, and the texts ``__texts``."""
    if 0 < len(partitions) <= _NAMES_IN_THE_SQL:
        rows = (
            f"({row}, array({', '.join(map(_text, partition.values))}))"
            for row, partition in enumerate(partitions)
        )
        return session.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS names(__row, __texts)")
    # one text for all: passing values one by one would take nearly a millisecond each
    document = json.dumps([partition.values for partition in partitions])
    exploded = session.sql(
        "SELECT posexplode(from_json(:names, 'array<array<string>>')) AS (__row, __texts)",
        args={"names": document},
    )
    return LocalRows(session, exploded).frame


def _text(value: str | None) -> str:
    return "CAST(NULL AS STRING)" if value is None else literal(value)


def fulfilling(
    session: SparkSession,
    table: Table,
    layers: Sequence[Layer],
    partitions: Sequence[Partition],
    conditions: Sequence[str],
    parameters: Mapping[str, object],
    keys: Keys | None = None,
) -> list[Partition] | None:
    """The partitions for which all ``conditions`` are true, together with one of the ``keys``.

    Includes every ``__odd`` partition; see :func:`skeleton_view`. Returns ``None`` if Spark finds
    that the conditions are not deterministic.
    """
    names_view, keys_view = unique_view("__partition_names"), unique_view("__keys")
    with skeleton_view(session, names_view, table, partitions):
        skeleton = _from(names_view, layers)
        condition = " AND ".join(conditions)
        if keys is None:  # Spark evaluates a filter of local data without a job
            sql = f"SELECT __row FROM {skeleton} WHERE __odd OR ({condition})"
        else:
            keys.frame.createOrReplaceTempView(keys_view)
            known = _keys_from(keys_view, keys)
            sql = (
                f"SELECT __row FROM {skeleton} LEFT SEMI JOIN {known} ON {condition} "
                f"UNION ALL SELECT __row FROM {names_view} WHERE __odd"
            )
        frame = session.sql(sql, args=dict(parameters))
        try:
            if not is_stable(frame):
                return None
            return [partitions[number] for number in sorted({row[0] for row in frame.collect()})]
        finally:
            session.catalog.dropTempView(keys_view)


def _from(names_view: str, layers: Sequence[Layer]) -> str:
    sql = f"{names_view} AS {quote(layers[0].alias)}"
    for layer in layers[1:]:
        columns = [f"{text} AS {quote(name)}" for name, text in layer.columns]
        listed = ", ".join(["__row", "__odd", *columns])
        sql = f"(SELECT {listed} FROM {sql}) AS {quote(layer.alias)}"
    return sql


def _keys_from(keys_view: str, keys: Keys) -> str:
    """The keys, under the aliases that the conditions use.

    Several relations become struct columns of one relation, so that ``alias.column`` is a field.
    """
    fields: dict[str, list[tuple[str, str]]] = {}
    for number, column in enumerate(keys.source.columns):
        fields.setdefault(column.alias, []).append((column.name, f"c{number}"))
    if len(fields) == 1:
        ((alias, columns),) = fields.items()
        listed = ", ".join(f"{key} AS {quote(name)}" for name, key in dict(columns).items())
        return f"(SELECT {listed} FROM {keys_view}) AS {quote(alias)}"
    structs = (
        f"struct({', '.join(f'{key} AS {quote(name)}' for name, key in dict(columns).items())}) "
        f"AS {quote(alias)}"
        for alias, columns in fields.items()
    )
    return f"(SELECT {', '.join(structs)} FROM {keys_view}) AS {keys_view}"
