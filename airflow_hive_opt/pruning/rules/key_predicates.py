"""Turns the keys of small tables into a condition on a data column of the big table's scan.

If the join column is not a partition column, the small table's keys can still exclude row groups.
Spark pushes a list in the statement down to Parquet and ORC, but not the keys that it finds at run
time. Rows whose value is not among the keys take no part in the join, by the same rule as for
partitions (:mod:`~airflow_hive_opt.pruning.rules.weakening`). The files show before the join
whether the condition saves time.

>>> from airflow_hive_opt.pruning.example import key_predicates
>>> print(key_predicates('SELECT amount FROM sales s JOIN src ON s.item = src.key AND value = 1'))
s.item by SELECT DISTINCT `src`.`key` FROM src AS `src` WHERE (`src`.value = 1) AND ...
>>> key_predicates('SELECT amount FROM sales s LEFT JOIN src ON s.item = src.key AND value = 1')
''
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from airflow_hive_opt.pruning.decisions import KeyPredicate, Layer, Plan
from airflow_hive_opt.pruning.operators import GroupBy, Operator, Select, TableScan, relations, walk
from airflow_hive_opt.pruning.query import Condition
from airflow_hive_opt.pruning.rules.key_sources import components, key_source, small_relations
from airflow_hive_opt.pruning.rules.skeletons import VisibleBlock, itself
from airflow_hive_opt.pruning.rules.weakening import weaken
from airflow_hive_opt.statement.settings import SMALL_TABLE_FILESIZE, Settings

# Reading a small table's keys takes about as long as scanning ten times its bytes.
_LARGE = 10


def find_key_predicates(plan: Plan, settings: Settings) -> Plan:
    """Finds every equality of a bare data column of a large table with a small table's column."""
    if not settings.switches.key_predicate:
        return plan
    found: dict[int, list[dict[KeyPredicate, None]]] = {}
    for tree in plan.trees:
        for block in _blocks(tree):
            for leaf in relations(block).values():
                if isinstance(leaf, TableScan) and _is_large(leaf, settings):
                    one = dict.fromkeys(_of_scan(block, leaf, settings))
                    found.setdefault(leaf.relation.reference.start, []).append(one)
    # a scan in a CTE that is read several times is found several times: all readers must agree
    agreed = tuple(
        predicate
        for first, *others in found.values()
        for predicate in first
        if all(predicate in other for other in others)
    )
    return replace(plan, predicates=agreed)


def _blocks(tree: Operator) -> Iterator[Operator]:
    """The tree below each SELECT: joins, filters, relations."""
    for operator in walk(tree):
        if isinstance(operator, Select):
            below = operator.input
            yield below.input if isinstance(below, GroupBy) else below


def _is_large(scan: TableScan, settings: Settings) -> bool:
    """Whether reading less of the table can save time; false for views."""
    relation = scan.relation
    if relation.table.transactional:
        return False
    total = relation.table.total_bytes
    known_small = total is not None and total < _LARGE * settings.number(SMALL_TABLE_FILESIZE)
    is_view = relation.table.definition is not None or relation.table.view is not None
    by_values = bool(relation.table.provider)  # partition_pruning restricts such a table
    return relation.restrictable and not known_small and not is_view and not by_values


def _of_scan(block: Operator, scan: TableScan, settings: Settings) -> Iterator[KeyPredicate]:
    place = _data_columns(block, scan)
    weakened = weaken(block, scan)
    others = weakened.real - {place.alias}
    small, _ = small_relations(block, others, settings, scan.relation.table.total_bytes)
    for group, own in components(small, weakened.holding):
        for link in weakened.holding:
            # keys that come from partition names would only filter those partitions again
            tables = not any(small[alias].names for alias in group)
            if tables and _is_bare(link, place) and link.aliases - {place.alias} <= group:
                source = key_source(place, [link], group, own, small)
                for column in source.partition_columns:
                    yield KeyPredicate(scan.relation, column, place.columns[column].type, source)


def _is_bare(link: Condition, place: VisibleBlock) -> bool:
    mine = [column for column in link.columns if column.alias == place.alias]
    return link.usable and link.comparison == "=" and any(map(place.followed, mine))


def _data_columns(block: Operator, scan: TableScan) -> VisibleBlock:
    """A visible block with the scan's data columns instead of its partition columns."""
    alias = scan.relation.alias
    columns = {
        column.name: itself(alias, column.name, column) for column in scan.relation.table.columns
    }
    return VisibleBlock(block, scan, alias, (Layer(alias),), columns)
