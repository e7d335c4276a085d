"""Conditions on a subquery that follow from equal columns of another relation of the join.

From ``a.y = b.y`` and ``a.y = 2000`` follows ``b.y = 2000``, which can then move into the subquery
b. Only columns of the same exact type count, because Spark converts one side otherwise. Conditions
for tables are not derived: key sets express them.

>>> from airflow_hive_opt.pruning.example import decisions
>>> print(decisions('''
...     SELECT * FROM (SELECT item, year AS y FROM sales s JOIN days d ON s.ds = d.ds) b
...     JOIN days a ON a.year = b.y WHERE a.year = 2000'''))
s: PRUNED, fast by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE (`d`.year = 2000) ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_hive_opt.pruning.operators import Filter, Join, Operator, subquery_of
from airflow_hive_opt.pruning.output_columns import unchanged
from airflow_hive_opt.pruning.query import ColumnRef, Condition, JoinKind
from airflow_hive_opt.pruning.rules.skeletons import column_type
from airflow_hive_opt.pruning.substitution import substituted
from airflow_hive_opt.statement.types import family

_BOTH = (JoinKind.INNER, JoinKind.LEFT_SEMI)


def derived(
    leaves: Mapping[str, Operator], known: Sequence[Condition], targets: frozenset[str]
) -> tuple[Condition, ...]:
    """The conditions on subqueries of ``targets`` that follow from the ``known`` conditions.

    ``known`` are conditions that are true for every row that matters; ``leaves`` are the relations
    of the block by alias.
    """
    wanted = {alias for alias in targets if subquery_of(leaves[alias]) is not None}
    if not wanted:
        return ()
    equal = _equal_columns(leaves, known)
    found: dict[str, Condition] = {condition.sql: condition for condition in known}
    new: dict[str, Condition] = {}
    for condition in known:
        if len(condition.aliases) != 1 or not condition.usable:
            continue
        for alias in wanted - condition.aliases:
            by = {
                column: unchanged(other.name, other)
                for column in condition.columns
                for other in equal.get(column, ())
                if other.alias == alias
            }
            copy = substituted(condition, by)
            if copy is not None and copy.sql not in found:
                new[copy.sql] = copy
    return tuple(new.values())


def true_for_rows(operator: Operator) -> tuple[Condition, ...]:
    """The conditions inside a block that every row of the operator's output fulfils."""
    if isinstance(operator, Filter):
        return operator.conditions + true_for_rows(operator.input)
    if isinstance(operator, Join):
        sides: tuple[Condition, ...] = ()
        if not operator.kind.supplies_nulls_left:
            sides += true_for_rows(operator.left)
        if operator.kind in _BOTH:
            sides += operator.conditions
        if operator.kind in _BOTH or operator.kind is JoinKind.RIGHT_OUTER:
            sides += true_for_rows(operator.right)
        return sides
    return ()


def _equal_columns(
    leaves: Mapping[str, Operator], known: Sequence[Condition]
) -> dict[ColumnRef, frozenset[ColumnRef]]:
    """For each column, all columns that have the same value, itself included."""
    equal: dict[ColumnRef, frozenset[ColumnRef]] = {}
    for condition in known:
        if condition.comparison != "=" or condition.operands is None:
            continue
        left, right = (operand.column for operand in condition.operands)
        if left is None or right is None or not _same_type(leaves, left, right):
            continue
        both = equal.get(left, frozenset({left})) | equal.get(right, frozenset({right}))
        equal.update(dict.fromkeys(both, both))
    return equal


def _same_type(leaves: Mapping[str, Operator], left: ColumnRef, right: ColumnRef) -> bool:
    if left.alias not in leaves or right.alias not in leaves:
        return False
    types = {column_type(leaves[column.alias], column.name) for column in (left, right)}
    return len(types) == 1 and family(types.pop()) is not None
