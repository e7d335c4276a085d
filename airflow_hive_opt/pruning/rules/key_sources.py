"""Finds the small tables that supply the keys of a scan, and the queries that read the keys.

Relations that are joined with each other by equalities form one source. So a dimension that another
dimension filters (a snowflake schema) supplies only the keys that remain. A relation supplies keys
if it is small and returns the same rows whenever it is read. A partitioned table of any size
supplies the names of its partitions. Each source is one query with the conditions that hold for it
(HIVE-5119, step 5).

Equal keys connect the relations here. ``hive.rules.filter_propagation`` also follows equal keys,
but to copy filters as Hive does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.operators import (
    Operator,
    PassedThrough,
    TableScan,
    relations,
    subquery_of,
)
from airflow_hive_opt.pruning.query import (
    ColumnRef,
    Condition,
    NarrowedTable,
    OpaqueRelation,
    Relation,
    SubqueryRelation,
    TableRelation,
)
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.rules.listed_partitions import listed_partitions
from airflow_hive_opt.pruning.rules.skeletons import VisibleBlock, column_type
from airflow_hive_opt.pruning.scope import UNNAMED
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.settings import SMALL_TABLE_FILESIZE, Settings
from airflow_hive_opt.statement.types import TIMESTAMP, family
from airflow_hive_opt.statement.zip_strict import zip_strict

# In bytes. Reading a table up to this size has a negligible cost, so it may supply keys even if
# it is larger than the scanned table.
_NO_COST = 1_000_000
SKELETON_VIEW = "__partitions_of_"
"""What the name of a view of partition names begins with in a key query."""


@dataclass(frozen=True)
class Small:
    """A relation that can supply keys, from its rows or from its partition ``names``."""

    alias: str
    operator: Operator
    names: bool

    @property
    def table(self) -> Table | None:
        """The table, or ``None`` if the relation is not a table."""
        return self.operator.relation.table if isinstance(self.operator, TableScan) else None

    @property
    def narrowed(self) -> NarrowedTable | None:
        """Set for a table of any size of which the statement reads a part."""
        return self.operator.relation.narrowed if isinstance(self.operator, TableScan) else None

    @property
    def single_row(self) -> bool:
        """Whether the relation is a scalar subquery."""
        subquery = subquery_of(self.operator)
        return subquery is not None and subquery.single_row

    def provides(self, columns: Iterable[ColumnRef]) -> bool:
        """Whether the relation can supply all of its columns among ``columns``.

        If its partition names are read, it can supply only its partition columns.
        """
        mine = {column.name for column in columns if column.alias == self.alias}
        return not self.names or mine <= _partition_columns(self.operator)


def small_relation(
    operator: Operator | None, alias: str, settings: Settings, scanned_bytes: int | None
) -> Small | Reason:
    """The relation as a supplier of keys, or the reason why it can't be one.

    ``scanned_bytes`` is the size of the table that the keys prune, or ``None`` if not known.
    """
    reason = _unfit(operator, settings, scanned_bytes)
    if reason is None and operator is not None:
        return Small(alias, operator, names=False)
    if reason is Reason.KEY_SOURCE_TRANSACTIONAL:
        return reason
    named = isinstance(operator, TableScan) and operator.relation.table.partitions_in_metastore
    if operator is not None and named and _partition_columns(operator):
        return Small(alias, operator, names=True)
    return reason or Reason.KEY_SOURCE_NOT_PLANNED


def small_relations(
    tree: Operator, aliases: Iterable[str], settings: Settings, scanned_bytes: int | None
) -> tuple[dict[str, Small], dict[str, Reason]]:
    """Those of ``aliases`` below ``tree`` that can supply keys, and reasons for the others."""
    small: dict[str, Small] = {}
    unfit: dict[str, Reason] = {}
    wanted = frozenset(aliases)
    for alias, operator in relations(tree).items():
        if alias in wanted:
            given = small_relation(operator, alias, settings, scanned_bytes)
            if isinstance(given, Small):
                small[alias] = given
            else:
                unfit[alias] = given
    return small, unfit


def components(
    small: Mapping[str, Small], holding: Sequence[Condition]
) -> list[tuple[frozenset[str], tuple[Condition, ...]]]:
    """Groups of relations that equalities connect, each with the conditions on it alone.

    Any condition connects a scalar subquery: its one row multiplies no rows.
    """
    own = [
        condition
        for condition in holding
        if condition.usable
        and condition.aliases
        and condition.aliases <= small.keys()
        and all(small[alias].provides(condition.columns) for alias in condition.aliases)
    ]
    group_of = {alias: frozenset({alias}) for alias in small}
    for condition in own:
        scalar = any(small[alias].single_row for alias in condition.aliases)
        if (condition.comparison == "=" or scalar) and len(condition.aliases) > 1:
            met = frozenset().union(*(group_of[alias] for alias in condition.aliases))
            group_of.update(dict.fromkeys(met, met))
    conditions: dict[frozenset[str], list[Condition]] = {group: [] for group in group_of.values()}
    for condition in own:
        group = group_of[next(iter(condition.aliases))]
        if condition.aliases <= group:
            conditions[group].append(condition)
    return [(group, tuple(found)) for group, found in conditions.items()]


def of_narrowed(
    group: frozenset[str],
    own: Sequence[Condition],
    links: Sequence[Condition],
    alias: str,
    small: Mapping[str, Small],
) -> tuple[frozenset[str], tuple[Condition, ...], list[Condition]]:
    """The narrowed tables of a group that are joined with each other, without its other relations.

    Those are held to the snapshots of their keys. The rows of another relation may change until the
    statement reads it. Without it the query returns the same keys or more. ``links`` join the group
    with ``alias``; returns those of the tables that are left.
    """
    narrowed = {found for found in group if small[found].narrowed}
    asked = [link for link in links if link.aliases - {alias} <= narrowed]
    kept = set(min((sorted(link.aliases - {alias}) for link in asked), default=()))
    inside = [found for found in own if found.aliases <= narrowed]
    while more := {
        other for found in inside if found.aliases & kept for other in found.aliases - kept
    }:
        kept |= more
    return (
        frozenset(kept),
        tuple(found for found in inside if found.aliases <= kept),
        [link for link in asked if link.aliases - {alias} <= kept],
    )


def key_source(
    place: VisibleBlock,
    links: Sequence[Condition],
    group: frozenset[str],
    own: Sequence[Condition],
    small: Mapping[str, Small],
    by_values: bool = False,
) -> KeySource:
    """The source of the keys for ``links``.

    ``links`` are conditions between the scan and the relations of ``group``. ``own`` are the
    conditions on ``group`` alone. ``by_values`` says that the table finds its files by values,
    not by the texts of a metastore, so that keys may be timestamps.
    """
    check_budget()
    aliases = tuple(alias for alias in small if alias in group)
    pairs = [_pair(place, link, small, by_values) for link in links]
    columns: list[ColumnRef] = []
    partition_columns: list[str] = []
    for link, pair in zip_strict(links, pairs):
        if pair is not None:
            if pair not in zip(partition_columns, columns):
                partition_columns.append(pair[0])
                columns.append(pair[1])
            continue
        theirs = sorted((c for c in link.columns if c.alias != place.alias), key=str)
        columns += [column for column in theirs if column not in columns]
    fast = None not in pairs
    if not fast:
        columns = list(dict.fromkeys(columns))
    keys = [f"{quote(column.alias)}.{quote(column.name)}" for column in columns]
    where = list(dict.fromkeys(f"({condition.sql})" for condition in own))
    where += [
        f"{key} IS NOT NULL"
        for key, column in dict.fromkeys(zip_strict(keys, columns))
        if any(link.null_rejecting and column in link.columns for link in links)
    ]
    from_ = ", ".join(_from_item(small[alias]) for alias in aliases)
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    narrowed = tuple(found for alias in aliases if (found := small[alias].narrowed))
    listed = None
    if by_values and len(aliases) == 1 and not narrowed:
        read = {*columns}.union(*(each.columns for each in own))
        listed = listed_partitions(small[aliases[0]].operator, read)
    return KeySource(
        aliases,
        " and ".join(_name(small[alias]) for alias in aliases),
        f"SELECT DISTINCT {', '.join(keys)} FROM {from_}{condition}",
        tuple(columns),
        tuple(dict.fromkeys(f"({link.sql})" for link in links)),
        place.layers,
        any(link.comparison == "=" for link in links),
        tuple(partition_columns) if fast else (),
        tuple(
            (SKELETON_VIEW + alias, table)
            for alias in aliases
            if small[alias].names and (table := small[alias].table) is not None
        ),
        _scan([small[alias] for alias in aliases]),
        tuple(dict.fromkeys(condition.text for condition in own)),
        tuple(dict.fromkeys(condition.sql for condition in own)),
        f"SELECT DISTINCT {', '.join(keys)} FROM {listed}{condition}" if listed else "",
        narrowed,
    )


def _pair(
    place: VisibleBlock, link: Condition, small: Mapping[str, Small], by_values: bool
) -> tuple[str, ColumnRef] | None:
    """The partition column and the key column of a link, or ``None``.

    A link has such a pair only if it is an equality of bare columns of comparable types, which the
    metastore can evaluate as a filter.
    """
    if link.comparison != "=" or link.operands is None:
        return None
    for mine, other in (link.operands, link.operands[::-1]):
        seen = place.followed(mine.column) if mine.column else None
        if seen is None or not seen.column or other.column is None:
            continue
        if other.column.alias == place.alias:
            return None
        theirs = column_type(small[other.column.alias].operator, other.column.name)
        ours = family(seen.type)
        alike = ours is not None and (not theirs or family(theirs) == ours)
        alike |= by_values and seen.type == TIMESTAMP and theirs in ("", TIMESTAMP)
        return (seen.column, other.column) if alike else None
    return None


def _unfit(
    operator: Operator | None, settings: Settings, scanned_bytes: int | None
) -> Reason | None:
    """The reason why the relation's rows can't supply keys, or ``None`` if they can."""
    relation = _relation(operator)
    if relation is None:
        return Reason.KEY_SOURCE_NOT_PLANNED
    if isinstance(relation, OpaqueRelation) and not relation.text:
        return Reason.KEY_SOURCE_NOT_PLANNED
    if isinstance(relation, SubqueryRelation) and not relation.self_contained:
        return Reason.KEY_SOURCE_NOT_PLANNED
    if not relation.stable:
        return Reason.KEY_SOURCE_NOT_DETERMINISTIC
    tables = (relation.table,) if isinstance(relation, TableRelation) else relation.tables
    if any(table.scanned.transactional for table in tables):
        return Reason.KEY_SOURCE_TRANSACTIONAL
    if isinstance(relation, TableRelation) and relation.narrowed:
        return None
    total = 0
    for table in tables:
        if table.total_bytes is None and table.partition_columns:
            return Reason.KEY_SOURCE_NOT_SMALL
        total += table.total_bytes or 0
    if total > settings.number(SMALL_TABLE_FILESIZE):
        return Reason.KEY_SOURCE_NOT_SMALL
    larger = scanned_bytes is not None and total > max(scanned_bytes, _NO_COST)
    return Reason.KEY_SOURCE_LARGER_THAN_TABLE if larger else None


def _relation(operator: Operator | None) -> Relation | None:
    if isinstance(operator, (TableScan, PassedThrough)):
        return operator.relation
    return None if operator is None else subquery_of(operator)


def _partition_columns(operator: Operator) -> frozenset[str]:
    if not isinstance(operator, TableScan):
        return frozenset()
    return frozenset(column.name for column in operator.relation.table.partition_columns)


def _from_item(small: Small) -> str:
    relation = _relation(small.operator)
    alias = quote(small.alias)
    if small.names:
        return f"{quote(SKELETON_VIEW + small.alias)} AS {alias}"
    if isinstance(relation, OpaqueRelation):
        return relation.text
    if isinstance(relation, SubqueryRelation):
        listed = f" ({', '.join(map(quote, relation.names))})" if relation.names else ""
        return f"({relation.text}) AS {alias}{listed}"
    if isinstance(relation, TableRelation) and relation.narrowed:
        part = f"{relation.narrowed.version} AS {alias} WHERE {relation.narrowed.conditions}"
        return f"(SELECT * FROM {relation.text} {part}) AS {alias}"
    if isinstance(relation, TableRelation):
        return f"{relation.text} AS {alias}"
    raise TypeError(f"no relation: {small.operator}")


def _scan(group: Sequence[Small]) -> ScanRef | None:
    """The scan of the table if the group is exactly one table, read as rows; or ``None``."""
    relation = None if len(group) > 1 or group[0].names else _relation(group[0].operator)
    return relation.scan if isinstance(relation, TableRelation) else None


def _name(small: Small) -> str:
    relation = _relation(small.operator)
    if isinstance(relation, TableRelation):
        return relation.table.short_name
    return "a subquery" if small.alias.startswith(UNNAMED) else small.alias
