"""What partition pruning decides of each scan of a partitioned table."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hive_opt.planner.catalog import Table
from airflow_hive_opt.planner.query import TableRelation
from airflow_hive_opt.planner.reasons import Reason


@dataclass(frozen=True)
class KeySource:
    """A query that gives the distinct key tuples of one small side.

    Its columns stand in the order of ``partition_columns``, the columns of the big table that
    they are compared with. ``alias`` is the small side's alias, ``name`` what to call it to people.
    """

    alias: str
    name: str
    sql: str
    partition_columns: tuple[str, ...]


@dataclass(frozen=True)
class ScanDecision:
    """One scan of a partitioned table: pruned by ``sources``, or left whole for ``reason``.

    ``relation`` is ``None`` for a scan in a part of the statement that passes through.
    ``static_predicates`` are the statement's own conditions on partition columns alone.
    """

    alias: str
    table: Table
    reason: Reason
    relation: TableRelation | None = None
    sources: tuple[KeySource, ...] = ()
    static_predicates: tuple[str, ...] = ()

    @property
    def pruned(self) -> bool:
        """Whether keys will choose the scan's partitions."""
        return self.reason is Reason.PRUNED

    @property
    def columns(self) -> tuple[str, ...]:
        """The partition columns that keys restrict, in the table's order."""
        named = {name for source in self.sources for name in source.partition_columns}
        return tuple(column.name for column in self.table.partition_columns if column.name in named)
