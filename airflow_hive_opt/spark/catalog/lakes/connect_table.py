"""A table of a Spark Connect session as SQL describes it, where no object of the JVM can be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.catalog.lakes.place import SESSION_CATALOG, Place
from airflow_hive_opt.spark.catalog.table_facts import columns_in
from airflow_hive_opt.statement.identifiers import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.statement.catalog import Column

_DETAILS = "# Detailed Table Information"
_PARTITIONS = "# Partition Information"
_TRANSFORMS = "# Partitioning"


@dataclass(frozen=True)
class ConnectTable:
    """A table at its place, and the rows of DESCRIBE TABLE EXTENDED for it.

    The properties raise Spark's errors.
    """

    session: SparkSession
    place: Place
    described: tuple[tuple[str, str], ...]

    @property
    def own_name(self) -> str:
        """The table's name for itself: without the branch or snapshot that the place selects."""
        return self._details.get("Name", "")

    @property
    def provider(self) -> str:
        """The table's format in lower case, empty if Spark names none."""
        return self._details.get("Provider", "").lower()

    @property
    def location(self) -> str | None:
        """Where the table's data is."""
        return self._details.get("Location")

    @property
    def partitioning(self) -> tuple[str, ...]:
        """The columns and transforms by which the table is partitioned, as Spark shows them."""
        return (*self._below(_PARTITIONS), *self._transforms())

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in lower case."""
        return tuple(columns_in(self.session.table(self.sql_name).schema))

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        rows = self.session.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect()
        return {str(row["key"]): str(row["value"]) for row in rows}

    @property
    def sql_name(self) -> str:
        """The table's name as SQL reads it."""
        return _sql_name(self.place)

    def first_row(self, sql: str) -> dict[str, Any] | None:
        """The first row of a query or command on the table, whose name stands for ``{table}``."""
        rows = self.session.sql(sql.replace("{table}", self.sql_name)).take(1)
        return rows[0].asDict() if rows else None

    @cached_property
    def _details(self) -> dict[str, str]:
        names = [name for name, _ in self.described]
        if _DETAILS not in names:
            return {}
        return dict(self.described[names.index(_DETAILS) + 1 :])

    def _transforms(self) -> Iterator[str]:
        names = [name for name, _ in self.described]
        start = names.index(_TRANSFORMS) + 1 if _TRANSFORMS in names else len(names)
        for name, transform in self.described[start:]:
            if not name.startswith("Part "):
                return
            yield transform

    def _below(self, heading: str) -> Iterator[str]:
        names = [name for name, _ in self.described]
        start = names.index(heading) + 1 if heading in names else len(names)
        for name in names[start:]:
            if not name:
                return
            if not name.startswith("#"):
                yield quote(name)


def table_over_sql(session: SparkSession, place: Place) -> ConnectTable:
    """The table of a Spark Connect session at the place; raises Spark's errors."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {_sql_name(place)}").collect()
    told = tuple((str(row["col_name"]), str(row["data_type"])) for row in rows)
    return ConnectTable(session, place, told)


def _sql_name(place: Place) -> str:
    parts = (*place.namespace, place.name)
    is_path = place.catalog == SESSION_CATALOG and "/" in place.name
    return ".".join(map(quote, parts if is_path else (place.catalog, *parts)))
