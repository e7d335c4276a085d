"""DuckDB: a relation of the partitions to read, and a condition for tables that it opens itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_hive_opt.engines.conditions import condition_of, may_be_null
from airflow_hive_opt.engines.files import ListedFile, OpenPath, files_of, open_uri
from airflow_hive_opt.engines.installed import check_installed, is_before
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.sql import (
    clock_text,
    quoted,
    sql_of,
    standard_literal,
    text_literal,
)
from airflow_hive_opt.engines.values import Value

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_TYPES = {"string": "VARCHAR", "int": "INTEGER", "timestamp": "TIMESTAMPTZ"}
_FILE = "__file"
_SPELT = "DuckDB gives a file another name than the list: use condition() instead of relation()"


def relation(
    connection: DuckDBPyConnection, scan: PrunedScan, open_path: OpenPath = open_uri
) -> DuckDBPyRelation:
    """The rows of the partitions to read, from their Parquet files, with the partition columns.

    DuckDB opens no other file. Raises :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    check_installed("duckdb")
    listed = files_of(scan, open_path)
    paths = ", ".join(text_literal(file.uri) for file in listed.with_columns)
    rows = (
        f"read_parquet([{paths}], filename = '{_FILE}', hive_partitioning = false, "
        "union_by_name = true)"
    )
    own = [
        name
        for name in connection.sql(f"SELECT * FROM {rows} LIMIT 0").columns
        if name.lower() not in (_FILE, *scan.columns)
    ]
    values = ", ".join(f"({', '.join(_cells(scan, file))})" for file in listed.with_columns)
    names = [f"c{at}" for at, _ in enumerate(scan.columns)]
    selected = [f"f.{quoted(name)}" for name in own] + [
        f"CAST(p.{name} AS {_duckdb(type_)}) AS {quoted(column)}"
        for name, column, type_ in zip(names, scan.columns, scan.types, strict=True)
    ]
    # rows of a file whose name DuckDB spells otherwise would be lost without a word
    known = f"CASE WHEN p.{_FILE} IS NULL THEN error({text_literal(_SPELT)})::BOOLEAN ELSE TRUE END"
    return connection.sql(
        f"SELECT {', '.join(selected)} FROM {rows} AS f LEFT JOIN (VALUES {values}) AS p"
        f"({', '.join([_FILE, *names])}) ON f.{_FILE} = p.{_FILE} "
        f"WHERE {str(bool(listed.files)).upper()} AND {known}"
    )


def condition(scan: PrunedScan) -> str:
    """A condition for WHERE, by which DuckDB leaves out files of tables that it opens itself.

    A TIMESTAMP partition column must be a TIMESTAMP there (``hive_types``), a wall clock. Raises
    :class:`~airflow_hive_opt.engines.scan.EngineError`, also if the partition of NULL is needed and
    DuckDB is older than 1.5: it reads the name of its folder as a text.
    """
    check_installed("duckdb")
    found = condition_of(scan)
    if may_be_null(found) and is_before("duckdb", 1, 5):
        raise EngineError(
            f"DuckDB before 1.5 finds no NULL in the names of {scan.table}'s folders: "
            "use relation() instead"
        )
    return sql_of(found, _literal, quoted)


def _duckdb(type_: str) -> str:
    return "VARCHAR" if type_.startswith("varchar") else _TYPES.get(type_, type_.upper())


def _cells(scan: PrunedScan, file: ListedFile) -> Iterator[str]:
    yield text_literal(file.uri)
    for value, type_ in zip(file.values, scan.types, strict=True):
        yield "NULL" if value is None else _literal(value, type_)


def _literal(value: Value, type_: str) -> str:
    if isinstance(value, datetime):
        type_, zone = ("TIMESTAMP", "") if value.tzinfo is None else ("TIMESTAMPTZ", "+00:00")
        return f"{type_} '{clock_text(value)}{zone}'"
    return standard_literal(value, type_)
