"""Delta's tables over Spark Connect: what DESCRIBE DETAIL and DESCRIBE HISTORY tell of them.

A condition on a column from which a partition column is generated is not made: SQL does not show
how the column is generated. The files that a condition leaves are not known before the statement
runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, StructType

from airflow_hive_opt.documents.descriptor import PlannedFiles
from airflow_hive_opt.spark.catalog.lakes.connect_table import ConnectTable
from airflow_hive_opt.spark.catalog.lakes.delta import VERSION, Delta
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.statement.catalog import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WITH_BOUNDS = "delta.dataSkippingStatsColumns"
_NUMBER_WITH_BOUNDS, _USUAL_NUMBER = "delta.dataSkippingNumIndexedCols", 32


class ConnectDelta(Delta):
    """See :class:`~airflow_hive_opt.spark.catalog.lakes.lake_format.LakeFormat`."""

    plans_files = False

    def is_loaded(self, session: SparkSession, loaded: Any) -> bool:  # noqa: ARG002
        """Whether Spark names Delta as the table's provider."""
        return bool(loaded.provider == self.name)

    def described(
        self,
        session: SparkSession,
        place: Place,  # noqa: ARG002
        table: Table,
        loaded: ConnectTable,
    ) -> Table | None:
        """The table; columns of liquid clustering are in ``clustered_by``, like sort columns."""
        detail = loaded.first_row("DESCRIBE DETAIL {table}")
        if detail is None:
            return None
        partitioned = tuple(str(name).lower() for name in detail["partitionColumns"])
        clustered = tuple(str(name).lower() for name in detail.get("clusteringColumns") or ())
        own = tuple(name for name in clustered if name in {each.name for each in table.columns})
        schema = session.table(loaded.sql_name).schema
        return replace(
            table,
            total_bytes=int(detail["sizeInBytes"]),
            provider=self.name,
            clustered_by=tuple(dict.fromkeys((*partitioned, *own))),
            partitioned_by=partitioned,
            bounded=_bounded(schema, partitioned, detail["properties"] or {}),
        )

    def counted(
        self,
        session: SparkSession,  # noqa: ARG002
        loaded: Any,  # noqa: ARG002
        found: PlannedFiles,  # noqa: ARG002
    ) -> PlannedFiles | None:
        """``None``: only Delta's own planning counts them, to which SQL has no access."""
        return None

    def version(
        self,
        session: SparkSession,  # noqa: ARG002
        place: Place,
        loaded: ConnectTable,
    ) -> str | None:
        """The number of the version; ``None`` if the name itself selects a version."""
        return None if VERSION.search(place.name) else _current(loaded)

    def table_id(self, loaded: ConnectTable) -> str:
        """The table's ID: a table that is made again has the same numbers of versions."""
        detail = loaded.first_row("DESCRIBE DETAIL {table}")
        return "" if detail is None else str(detail["id"])

    def state(self, loaded: Any) -> Mapping[str, str]:  # noqa: ARG002
        """Empty: over Spark Connect no keys are shared."""
        return {}

    def has_columns_of(self, session: SparkSession, loaded: ConnectTable, version: str) -> bool:  # noqa: ARG002
        """Whether the version is the current one: an earlier one may have other columns."""
        return _current(loaded) == version


def _current(loaded: ConnectTable) -> str | None:
    found = loaded.first_row("DESCRIBE HISTORY {table} LIMIT 1")
    return None if found is None else str(found["version"])


def _bounded(
    schema: StructType, partitioned: Sequence[str], properties: Mapping[str, str]
) -> tuple[str, ...]:
    """The columns of which Delta keeps bounds: those of a property, or else the first ones."""
    data = [field for field in schema.fields if field.name.lower() not in partitioned]
    if named := properties.get(_WITH_BOUNDS):
        names = {name.strip().strip("`").lower() for name in named.split(",")}
        return tuple(field.name.lower() for field in data if field.name.lower() in names)
    left = int(properties.get(_NUMBER_WITH_BOUNDS, _USUAL_NUMBER))
    if left < 0:
        return tuple(field.name.lower() for field in data)
    found = []
    for field in data:
        if left <= 0:
            break
        found.append(field.name.lower())
        left -= _leaves(field.dataType)
    return tuple(found)


def _leaves(type_: DataType) -> int:
    """How many of Delta's columns with bounds a column of the type takes."""
    if not isinstance(type_, StructType):
        return 1
    return sum(_leaves(field.dataType) for field in type_.fields)
