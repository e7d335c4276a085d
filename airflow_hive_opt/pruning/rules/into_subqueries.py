"""Moves conditions on a subquery's columns into the subquery, where they can select keys.

The condition stays above the subquery too. A column passes through renaming, deterministic
expressions, group keys, the columns by which every window function partitions, and the branches of
UNION. It does not pass LIMIT, other columns of window functions and aggregates, because dropping
rows below them changes the other rows.

>>> from airflow_hive_opt.pruning.example import decisions
>>> print(decisions('''
...     SELECT * FROM (SELECT year AS y, sum(amount) FROM sales s JOIN days d ON s.ds = d.ds
...                    GROUP BY year) t WHERE y = 2000'''))
s: PRUNED, fast by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE (`d`.year = 2000) ...
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hive_opt.pruning.operators import Select, Union
from airflow_hive_opt.pruning.query import ColumnRef, Condition, Projection
from airflow_hive_opt.pruning.rules.skeletons import column_type, same_for_group
from airflow_hive_opt.pruning.substitution import substituted
from airflow_hive_opt.statement.types import is_exact


def into_select(select: Select, conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """The ``conditions`` on a subquery's output that can be checked below its SELECT."""
    if select.subquery is None:
        return ()
    return _moved(select, select.subquery.alias, select.subquery.columns, conditions)


def into_branch(
    union: Union, branch: Select, conditions: Sequence[Condition]
) -> tuple[Condition, ...]:
    """The ``conditions`` on a UNION's output that can be checked below one branch's SELECT.

    A column passes if every branch has a bare column of the same type there, whose equal values are
    identical: otherwise UNION converts values or puts unlike ones together.
    """
    alias, names = union.subquery.alias, union.subquery.columns
    typed = [
        condition
        for condition in conditions
        if all(is_exact(column_type(union, column.name)) for column in condition.columns)
    ]
    return _moved(branch, alias, names, typed)


def _moved(
    select: Select, alias: str, names: Sequence[str], conditions: Sequence[Condition]
) -> tuple[Condition, ...]:
    if len(names) != len(select.projections):
        return ()
    by: dict[ColumnRef, Projection] = {}
    for name, projection in zip(names, select.projections):
        if projection.name == "*":  # it may be several columns: the next positions are not known
            break
        if names.count(name) == 1 and same_for_group(select, projection):
            by[ColumnRef(alias, name)] = projection
    found = (substituted(condition, by) for condition in conditions)
    return tuple(condition for condition in found if condition is not None)
