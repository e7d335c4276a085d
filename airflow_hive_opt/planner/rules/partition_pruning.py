"""Partition pruning by the keys of small tables: HIVE-5119, compile time, steps 4.1 to 4.6.

A scan B may be pruned by an equality ``B.p = S.k`` between bare columns, p a partition column,
where the equality can drop B's rows: in WHERE, or in the ON of a join that does not preserve B's
side. Between scan and join the value of p must not change. S is a small table or subquery; its
keys are read with its own filters.

>>> from airflow_hive_opt.planner.rules.example import decisions
>>> print(decisions('''
...     SELECT amount FROM sales s JOIN days ON s.ds = days.ds AND year = 2000'''))
s: PRUNED by SELECT DISTINCT `days`.`ds` FROM days AS `days` WHERE (year = 2000) AND ...
>>> print(decisions('SELECT s.amount FROM sales s LEFT JOIN days d ON s.ds = d.ds'))
s: PRESERVED_SIDE
>>> print(decisions('SELECT s.amount FROM sales s JOIN days d ON substr(s.ds, 1, 4) = d.ds'))
s: FUNCTION_ON_KEY
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airflow_hive_opt.planner.identifiers import quote
from airflow_hive_opt.planner.operators import (
    Filter,
    GroupBy,
    Join,
    Limit,
    Operator,
    PassedThrough,
    Select,
    TableScan,
    relations,
    subquery_of,
    walk,
)
from airflow_hive_opt.planner.pruning import KeySource, ScanDecision
from airflow_hive_opt.planner.query import (
    ColumnRef,
    Condition,
    Operand,
    SubqueryRelation,
    TableRelation,
)
from airflow_hive_opt.planner.reasons import Reason
from airflow_hive_opt.planner.settings import PARTITION_PRUNING, SMALL_TABLE_FILESIZE, Settings

_STEPS = list(Reason)


@dataclass
class _Findings:
    """What was found for one scan so far."""

    scan: TableScan
    static: tuple[Condition, ...]
    furthest: Reason = Reason.NO_JOIN_ON_PARTITION_COLUMN
    # (operator, small alias) -> partition column -> small column
    keys: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    sources: dict[tuple[int, str], tuple[Operator, tuple[Condition, ...]]] = field(
        default_factory=dict
    )

    def failed(self, reason: Reason) -> None:
        """Notes why one condition does not prune; the one that got furthest is told."""
        self.furthest = max(self.furthest, reason, key=_STEPS.index)


@dataclass(frozen=True)
class _Origin:
    """The scan and column a value comes from, and whether it may have changed on the way."""

    scan: TableScan
    column: str
    changed: bool


def prune_partitions(trees: Sequence[Operator], settings: Settings) -> tuple[ScanDecision, ...]:
    """A decision for every scan of a partitioned table, in the order of the trees."""
    found: dict[int, _Findings] = {}
    for tree in trees:
        for operator in walk(tree):
            if isinstance(operator, TableScan) and operator.relation.table.partition_columns:
                found[operator.relation.reference.start] = _Findings(
                    operator, _conditions_above(tree, operator)
                )
    for tree in trees:
        for operator in reversed(list(walk(tree))):  # sources in the order of the statement
            if isinstance(operator, Join | Filter):
                for condition in operator.conditions:
                    _examine(operator, condition, found, settings)
    return tuple(_decide(findings, settings) for findings in found.values())


def _examine(
    operator: Join | Filter, condition: Condition, found: dict[int, _Findings], settings: Settings
) -> None:
    """Steps 4.1 to 4.6 for one condition, in both directions."""
    if len(condition.aliases) < 2:
        return
    names = relations(operator)
    if condition.operands is None:
        for origin in _origins(names, condition.columns):
            _note(found, origin, Reason.NOT_EQUALITY)
        return
    left, right = condition.operands
    for mine, other in ((left, right), (right, left)):
        for origin in _origins(names, mine.columns):
            failure = _failure(operator, condition, mine, other, origin, settings)
            if failure is not None:
                _note(found, origin, failure)
            elif mine.column and other.column and _is_partition_column(origin):
                findings = found[origin.scan.relation.reference.start]
                key = (id(operator), other.column.alias)
                findings.keys.setdefault(key, {}).setdefault(origin.column, other.column.name)
                findings.sources[key] = _key_source_parts(operator, other.column.alias)


def _failure(
    operator: Join | Filter,
    condition: Condition,
    mine: Operand,
    other: Operand,
    origin: _Origin,
    settings: Settings,
) -> Reason | None:
    """Why ``mine = other`` can't prune the scan that ``mine`` comes from, or ``None``."""
    if condition.comparison != "=":
        return Reason.NOT_EQUALITY
    if mine.column is None:
        return Reason.FUNCTION_ON_KEY
    if origin.changed:
        return Reason.VALUE_CHANGED
    if isinstance(operator, Join) and _is_preserved(operator, mine.column):
        return Reason.PRESERVED_SIDE
    if other.column is None:
        return Reason.FUNCTION_ON_SMALL_KEY
    return _unfit_source(relations(operator).get(other.column.alias), settings)


def _is_preserved(join: Join, column: ColumnRef) -> bool:
    """Step 4.1: whether the join returns all rows of the column's side, matched or not."""
    if column.alias in relations(join.left):
        return join.kind.preserves_left
    return join.kind.preserves_right


def _origins(names: dict[str, Operator], columns: frozenset[ColumnRef]) -> Iterator[_Origin]:
    """Steps 4.4 and 4.5: the scan columns that ``columns`` come from."""
    for column in columns:
        operator = names.get(column.alias)
        if isinstance(operator, TableScan):
            yield _Origin(operator, column.name, changed=False)
        elif isinstance(operator, Limit | Select):
            yield from _through_subquery(operator, column.name)


def _through_subquery(operator: Limit | Select, name: str) -> Iterator[_Origin]:
    select = operator.input if isinstance(operator, Limit) else operator
    if not isinstance(select, Select):
        return
    below = select.input
    changed = select is not operator or select.windowed
    for projection in select.projections:
        if projection.name != name:
            continue
        grouped = not isinstance(below, GroupBy) or (
            projection.column is not None
            and projection.column in {key.column for key in below.keys}
        )
        same = not changed and grouped and projection.column is not None
        for origin in _origins(relations(below), projection.columns):
            yield _Origin(origin.scan, origin.column, origin.changed or not same)


def _unfit_source(operator: Operator | None, settings: Settings) -> Reason | None:
    """Why the other side can't give keys, or ``None`` where it can."""
    if operator is None or isinstance(operator, PassedThrough):
        return Reason.KEY_SOURCE_NOT_PLANNED
    relation = operator.relation if isinstance(operator, TableScan) else subquery_of(operator)
    if isinstance(relation, SubqueryRelation) and not relation.self_contained:
        return Reason.KEY_SOURCE_NOT_PLANNED
    if relation is None or not relation.stable:
        return Reason.KEY_SOURCE_NOT_DETERMINISTIC
    if any(isinstance(part, PassedThrough) for part in walk(operator)):
        return Reason.KEY_SOURCE_NOT_PLANNED
    total = 0
    for part in walk(operator):
        if isinstance(part, TableScan):
            table = part.relation.table
            if table.total_bytes is None and table.partition_columns:
                return Reason.KEY_SOURCE_NOT_SMALL
            total += table.total_bytes or 0
    return Reason.KEY_SOURCE_NOT_SMALL if total > settings.number(SMALL_TABLE_FILESIZE) else None


def _key_source_parts(
    operator: Join | Filter, alias: str
) -> tuple[Operator, tuple[Condition, ...]]:
    """The small side, and every condition that its matching rows are known to fulfil."""
    source = relations(operator)[alias]
    own = _conditions_above(operator, source)
    if isinstance(operator, Join):
        own += tuple(found for found in operator.conditions if found.aliases == {alias})
    return source, own


def _conditions_above(root: Operator, operator: Operator) -> tuple[Condition, ...]:
    """The filter that stands right on ``operator``."""
    for parent in walk(root):
        if isinstance(parent, Filter) and parent.input is operator:
            return parent.conditions
    return ()


def _is_partition_column(origin: _Origin) -> bool:
    return origin.column in {column.name for column in origin.scan.relation.table.partition_columns}


def _note(found: dict[int, _Findings], origin: _Origin, reason: Reason) -> None:
    if _is_partition_column(origin):
        found[origin.scan.relation.reference.start].failed(reason)


def _decide(findings: _Findings, settings: Settings) -> ScanDecision:
    relation = findings.scan.relation
    table = relation.table
    if not settings.is_on(PARTITION_PRUNING):
        reason = Reason.DISABLED
    elif not table.partitions_in_metastore:
        reason = Reason.PARTITIONS_NOT_IN_METASTORE
    elif not relation.restrictable:
        reason = Reason.SCAN_NOT_RESTRICTABLE
    elif findings.keys:
        reason = Reason.PRUNED
    else:
        reason = findings.furthest
    if reason is not Reason.PRUNED:
        return ScanDecision(relation.alias, table, reason, relation)
    partition_columns = {column.name for column in table.partition_columns}
    static = tuple(
        condition.text
        for condition in findings.static
        if _usable(condition)
        and condition.known_functions
        and {column.name for column in condition.columns} <= partition_columns
    )
    sources = dict.fromkeys(
        _key_source(*findings.sources[key], columns) for key, columns in findings.keys.items()
    )
    return ScanDecision(relation.alias, table, reason, relation, tuple(sources), static)


def _key_source(
    source: Operator, conditions: tuple[Condition, ...], columns: dict[str, str]
) -> KeySource:
    """Step 5: the query whose rows are the keys."""
    relation = source.relation if isinstance(source, TableScan) else subquery_of(source)
    if relation is None:
        raise TypeError(f"no relation: {source}")
    alias = quote(relation.alias)
    keys = [f"{alias}.{quote(name)}" for name in columns.values()]
    where = [f"({condition.text})" for condition in conditions if _usable(condition)]
    where += [f"{key} IS NOT NULL" for key in keys]
    named = isinstance(relation, TableRelation)
    text = relation.text if named else f"({relation.text})"
    sql = f"SELECT DISTINCT {', '.join(keys)} FROM {text} AS {alias} WHERE {' AND '.join(where)}"
    name = relation.table.short_name if isinstance(relation, TableRelation) else relation.alias
    return KeySource(relation.alias, name, sql, tuple(columns))


def _usable(condition: Condition) -> bool:
    return condition.deterministic and condition.self_contained
