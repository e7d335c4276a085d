"""Estimates by a query how much of the files a list of keys would skip, where no footer is read.

A Spark Connect session can't open files. It reads the column of a few files instead, and takes
each 20,000 rows of Parquet for a page, which is the most that Spark's writer puts into one. For ORC
it takes each split, because Spark gives no row numbers for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from airflow_hive_opt.metastores.partitions import Partition, typed_row
from airflow_hive_opt.restriction.list_condition import cheapest_way, list_condition
from airflow_hive_opt.spark.local_task.row_groups import FILES, RowGroup, spread
from airflow_hive_opt.spark.session.partition_lookup import partition_lookup
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote, quote_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_OF_A_PAGE = 20_000
_PLACES = {
    "parquet": ("_metadata.file_path", f"_metadata.row_index DIV {_ROWS_OF_A_PAGE}"),
    "orc": ("_metadata.file_path", "_metadata.file_block_start"),
}


def sampled_by_query(
    session: SparkSession,
    format_: str,
    table: Table,
    partitions: Sequence[Partition] | None,
    column: str,
    type_: str,
) -> list[RowGroup]:
    """Rows of some files that lie together, with their lowest and highest value of ``column``.

    ``format_`` is ``parquet`` or ``orc``. ``partitions`` are those that the scan reads,
    ``None`` for a table without partitions. Raises Spark's errors.
    """
    frame = session.table(quote_table(table.name))
    files = _files(session, frame, table, partitions)
    if not files:
        return []
    sample = session.read.format(format_).schema(f"{quote(column)} {type_}").load(files)
    from pyspark.sql.connect.functions import expr

    found = sample.groupBy(*map(expr, _PLACES[format_])).agg(
        expr("count(1)"), expr(f"min({quote(column)})"), expr(f"max({quote(column)})")
    )
    return [RowGroup(rows, low, high) for _, _, rows, low, high in found.collect()]


def _files(
    session: SparkSession, frame: DataFrame, table: Table, partitions: Sequence[Partition] | None
) -> list[str]:
    """The paths of some files, evenly spread over the partitions."""
    if partitions is None:
        return _spread_paths(frame)
    types = [column.type for column in table.partition_columns]
    found = (typed_row(part, types) for part in spread(partitions, FILES))
    rows = {row for row in found if row is not None}
    if not rows:
        return []
    names = [column.name for column in table.partition_columns]
    way = cheapest_way(names, rows, len(partitions))
    condition = list_condition(table.short_name, names, rows, way)
    with partition_lookup(session, {way}):
        return _spread_paths(frame.where(condition))


def _spread_paths(frame: DataFrame) -> list[str]:
    return spread(sorted(map(unquote, frame.inputFiles())), FILES)
