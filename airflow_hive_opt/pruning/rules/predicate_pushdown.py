"""Outer-join predicate pushdown (Hive's PredicatePushDown and JoinPPD).

During-join predicates are not pushed past preserved tables (case J1) but to null-supplying ones
(J2); after-join predicates are pushed to preserved tables (W1) but not past null-supplying ones
(W2). A condition that reads one relation moves to the position directly above it.

``hive.rules.operator_pushdown`` is the same rule for Hive's operator graph. It stops where Hive
stops; this one moves every condition that Spark's semantics allow.

>>> from airflow_hive_opt.pruning.example import before_and_after
>>> print(before_and_after(push_down, '''
...     SELECT s1.key FROM src s1 LEFT JOIN src s2 ON s1.key = s2.key AND s2.value > 'b'
...     WHERE s1.value > 'a' AND s2.key > 'c' '''))
FS
  SEL
    FIL s1.value > 'a' AND s2.key > 'c'
      JOIN LEFT OUTER ON s1.key = s2.key AND s2.value > 'b'
        TS src s1
        TS src s2
-->
FS
  SEL
    FIL s2.key > 'c'
      JOIN LEFT OUTER ON s1.key = s2.key
        FIL s1.value > 'a'
          TS src s1
        FIL s2.value > 'b'
          TS src s2
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from airflow_hive_opt.pruning.decisions import Plan
from airflow_hive_opt.pruning.operators import (
    FileSink,
    Filter,
    GroupBy,
    Join,
    LateralView,
    Limit,
    Operator,
    PassedThrough,
    Select,
    TableScan,
    Union,
    relations,
    subquery_of,
)
from airflow_hive_opt.pruning.query import Condition, JoinKind
from airflow_hive_opt.pruning.rules.into_subqueries import into_branch, into_select
from airflow_hive_opt.pruning.rules.transitive_conditions import derived, true_for_rows
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.settings import Settings

_Conditions = tuple[Condition, ...]
# The kinds of joins of which a side's rows matter only if they match a row of the other side.
_MATCHED_RIGHT = (JoinKind.INNER, JoinKind.LEFT_OUTER, JoinKind.LEFT_SEMI)
_MATCHED_LEFT = (JoinKind.INNER, JoinKind.RIGHT_OUTER, JoinKind.LEFT_SEMI)


def push_down(plan: Plan, _: Settings) -> Plan:
    """Moves every condition as near to its relation as the outer joins allow."""
    return replace(plan, trees=tuple(_push(tree, ()) for tree in plan.trees))


def _push(operator: Operator, falling: _Conditions) -> Operator:
    """``operator`` with the ``falling`` conditions, which hold for its output, at or below it."""
    check_budget()
    if isinstance(operator, (TableScan, PassedThrough)):
        return _filtered(operator, falling)
    if isinstance(operator, Union):
        inputs = tuple(_push_branch(operator, branch, falling) for branch in operator.inputs)
        return _filtered(replace(operator, inputs=inputs), falling)
    if isinstance(operator, Select) and operator.subquery is not None:
        return _filtered(_push_select(operator, into_select(operator, falling)), falling)
    if isinstance(operator, Limit) and subquery_of(operator) is not None:
        return _filtered(_descend(operator), falling)
    if isinstance(operator, Filter):
        going = tuple(condition for condition in operator.conditions if condition.usable)
        staying = tuple(condition for condition in operator.conditions if not condition.usable)
        return _filtered(_push(operator.input, falling + going), staying)
    if isinstance(operator, Join):
        return _push_join(operator, falling)
    if isinstance(operator, LateralView):
        below, staying = _split(falling, relations(operator.input))
        return _filtered(replace(operator, input=_push(operator.input, below)), staying)
    return _filtered(_descend(operator), falling)


def _push_branch(union: Union, branch: Operator, falling: _Conditions) -> Operator:
    if isinstance(branch, Select):
        return _push_select(branch, into_branch(union, branch, falling))
    return _descend(branch)


def _push_select(select: Select, falling: _Conditions) -> Operator:
    """Pushes the conditions below SELECT, and below its GROUP BY if it has one."""
    below = select.input
    if isinstance(below, GroupBy):
        return replace(select, input=replace(below, input=_push(below.input, falling)))
    return replace(select, input=_push(below, falling))


def _descend(operator: Operator) -> Operator:
    """Pushes down below an operator through which no condition moves."""
    if isinstance(operator, (Select, Limit, GroupBy, FileSink)):
        return replace(operator, input=_push(operator.input, ()))
    raise TypeError(f"no single input: {operator}")


def _push_join(join: Join, after: _Conditions) -> Operator:
    left_names, right_names = relations(join.left), relations(join.right)
    kind = join.kind
    to_left: _Conditions = ()
    to_right: _Conditions = ()
    during = join.conditions
    if not kind.supplies_nulls_left:  # W1, W2
        to_left, after = _split(after, left_names)
    if not kind.supplies_nulls_right:
        to_right, after = _split(after, right_names)
    if not kind.preserves_left:  # J1, J2
        moved, during = _split(during, left_names)
        to_left += moved
    if not kind.supplies_nulls_left:
        moved, during = _split(during, right_names)
        to_right += moved
    if join.subqueries:  # only conditions on subqueries are derived
        leaves = relations(join)
        left_rows = to_left + true_for_rows(join.left)
        right_rows = to_right + true_for_rows(join.right)
        # above an outer join, a condition does not tell which rows match: NULLs may fulfil it
        met = join.conditions + (after if kind in (JoinKind.INNER, JoinKind.LEFT_SEMI) else ())
        if kind in _MATCHED_RIGHT:
            to_right += derived(leaves, left_rows + met, frozenset(right_names))
        if kind in _MATCHED_LEFT:
            to_left += derived(leaves, right_rows + met, frozenset(left_names))
    joined = Join(_push(join.left, to_left), _push(join.right, to_right), kind, during)
    return _filtered(joined, after)


def _split(conditions: _Conditions, names: Container[str]) -> tuple[_Conditions, _Conditions]:
    """The conditions that read only relations of ``names`` and may move, and the others."""
    moving: list[Condition] = []
    staying: list[Condition] = []
    for condition in conditions:
        inside = condition.aliases and all(alias in names for alias in condition.aliases)
        (moving if inside and condition.usable else staying).append(condition)
    return tuple(moving), tuple(staying)


def _filtered(operator: Operator, conditions: _Conditions) -> Operator:
    if not conditions:
        return operator
    if isinstance(operator, Filter):
        return Filter(operator.input, operator.conditions + conditions)
    return Filter(operator, conditions)
