"""Adds the conditions that an OR implies for one relation, or for a table's partition columns.

``(d.year = 1999 AND s.n > 5) OR (d.year = 2000 AND s.n < 1)`` implies ``d.year = 1999 OR d.year =
2000``. Each branch must have a conjunct that reads nothing else. The OR itself stays.

>>> from airflow_hive_opt.pruning.example import before_and_after
>>> print(before_and_after(add_implied, '''
...     SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds
...     WHERE (d.year = 1 AND s.item = 5) OR d.year = 2'''))
FS
  SEL
    FIL (d.year = 1 AND s.item = 5) OR d.year = 2
      JOIN INNER ON s.ds = d.ds
        TS sales s
        TS days d
-->
FS
  SEL
    FIL (d.year = 1 AND s.item = 5) OR d.year = 2 AND ((d.year = 1)) OR ((d.year = 2))
      JOIN INNER ON s.ds = d.ds
        TS sales s
        TS days d
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_hive_opt.pruning.decisions import Plan
from airflow_hive_opt.pruning.operators import (
    Filter,
    Join,
    Operator,
    TableScan,
    relations,
    with_inputs,
)
from airflow_hive_opt.pruning.query import ColumnRef, Condition, Pieces, pieces_of
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.settings import Settings

_Branches = Sequence[Sequence[Condition]]


def add_implied(plan: Plan, _: Settings) -> Plan:
    """Adds after each OR of a join or filter the conditions that it implies."""
    return replace(plan, trees=tuple(map(_with_implied, plan.trees)))


def _with_implied(operator: Operator) -> Operator:
    inputs = tuple(map(_with_implied, operator.inputs))
    if any(new is not old for new, old in zip(inputs, operator.inputs)):
        operator = with_inputs(operator, inputs)
    if not isinstance(operator, (Filter, Join)):
        return operator
    if not any(condition.branches for condition in operator.conditions):
        return operator
    leaves = relations(operator)
    found: list[Condition] = []
    for condition in operator.conditions:
        found.append(replace(condition, branches=()))
        found += _implied(condition.branches, leaves)
    return replace(operator, conditions=tuple(found))


def _implied(branches: _Branches, leaves: Mapping[str, Operator]) -> Iterator[Condition]:
    """The conditions that follow from an OR, those on the first alias first."""
    check_budget()
    read = frozenset(column for branch in branches for found in branch for column in found.columns)
    for alias in sorted({column.alias for column in read}):
        mine = frozenset(column for column in read if column.alias == alias)
        named = mine & _partition_columns(leaves, alias)
        for columns in dict.fromkeys((mine, named, (read - mine) | named if named else mine)):
            if columns and columns != read:
                condition = _restricted_to(columns, branches)
                if condition is not None:
                    yield condition


def _partition_columns(leaves: Mapping[str, Operator], alias: str) -> frozenset[ColumnRef]:
    leaf = leaves.get(alias)
    if not isinstance(leaf, TableScan):
        return frozenset()
    visible = leaf.relation.table.visible_pruning_columns
    return frozenset(ColumnRef(alias, name) for name, _ in visible)


def _restricted_to(columns: frozenset[ColumnRef], branches: _Branches) -> Condition | None:
    """The OR of each branch's conjuncts on ``columns``; ``None`` if a branch has none."""
    kept = [
        [found for found in branch if found.columns and found.columns <= columns]
        for branch in branches
    ]
    every = [found for branch in kept for found in branch]
    if not all(kept) or not all(found.usable and found.sql for found in every):
        return None
    text = " OR ".join(
        "(" + " AND ".join(f"({found.sql})" for found in branch) + ")" for branch in kept
    )
    joined = _joined(
        [_joined([found.pieces for found in branch], " AND ") for branch in kept], " OR "
    )
    read = frozenset(column for found in every for column in found.columns)
    one_relation = len({column.alias for column in read}) == 1
    return Condition(
        text,
        read,
        deterministic=True,
        self_contained=True,
        known_functions=all(found.known_functions for found in every),
        # with several relations, a branch that does not read one of them may be true of its NULLs
        null_rejecting=one_relation
        and all(any(found.null_rejecting for found in branch) for branch in kept),
        sql=text,
        pieces=joined if all(found.pieces for found in every) else (),
        implied=True,
    )


def _joined(parts: Sequence[Pieces], by: str) -> Pieces:
    """The pieces of the parts, each in parentheses, with ``by`` between them."""
    found: list[str | ColumnRef] = []
    for part in parts:
        found += (by if found else "", "(", *part, ")")
    return pieces_of(found)
