"""Lets keys restrict any column of an Iceberg table, if that is asked for.

>>> from airflow_hive_opt.statement.catalog import Column, JsonCatalog, Table
>>> orders = Table("default.orders", (Column("id", "bigint"), Column("day", "date")),
...     provider="iceberg", clustered_by=("day",))
>>> DataColumns(JsonCatalog.of([orders])).table("orders").clustered_by
('id', 'day')
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.lake_formats import ICEBERG


@dataclass(frozen=True)
class DataColumns:
    """A catalog whose Iceberg tables are grouped by all of their columns.

    Their metadata has each file's lowest and highest value of a data column too. Whether that skips
    files depends on how the rows were written.
    """

    catalog: Catalog

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        found = self.catalog.table(name)
        if found is None or found.provider != ICEBERG:
            return found
        return replace(found, clustered_by=tuple(column.name for column in found.columns))
