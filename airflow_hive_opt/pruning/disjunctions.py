"""What an OR implies for one relation, or for a table's partition columns.

``(d.year = 1999 AND s.n > 5) OR (d.year = 2000 AND s.n < 1)`` implies ``d.year = 1999 OR d.year =
2000``. Each branch must have a conjunct that reads nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import conjuncts, is_null_rejecting, to_condition
from airflow_hive_opt.pruning.query import (
    ColumnRef,
    Condition,
    Pieces,
    TableRelation,
    pieces_of,
)
from airflow_hive_opt.pruning.scope import Scope


def conditions_of(node: exp.Expr | None, sql: str, scope: Scope) -> tuple[Condition, ...]:
    """The conjuncts of ON or WHERE, each followed by what it implies if it is an OR."""
    found: list[Condition] = []
    for part in conjuncts(node):
        found.append(to_condition(part, sql, scope))
        found.extend(implied(part, sql, scope))
    return tuple(found)


def implied(node: exp.Expr, sql: str, scope: Scope) -> Iterator[Condition]:
    """The conditions that follow from a conjunct that is an OR."""
    if not isinstance(node.unnest(), exp.Or):
        return
    branches = [
        [(part, to_condition(part, sql, scope, part_of_or=True)) for part in conjuncts(branch)]
        for branch in _branches(node)
    ]
    read = frozenset(
        column for branch in branches for _, found in branch for column in found.columns
    )
    for alias in sorted({column.alias for column in read}):
        mine = frozenset(column for column in read if column.alias == alias)
        named = mine & _partition_columns(scope, alias)
        for columns in dict.fromkeys((mine, named, (read - mine) | named if named else mine)):
            if columns and columns != read:
                condition = _restricted_to(columns, branches)
                if condition is not None:
                    yield condition


def _branches(node: exp.Expr) -> Iterator[exp.Expr]:
    waiting = [node]
    while waiting:
        inner = waiting.pop().unnest()
        if isinstance(inner, exp.Or):
            waiting += [inner.expression, inner.this]
        else:
            yield inner


def _partition_columns(scope: Scope, alias: str) -> frozenset[ColumnRef]:
    relation = scope.relations.get(alias)
    if not isinstance(relation, TableRelation):
        return frozenset()
    visible = relation.table.visible_pruning_columns
    return frozenset(ColumnRef(alias, name) for name, _ in visible)


def _restricted_to(
    columns: frozenset[ColumnRef], branches: list[list[tuple[exp.Expr, Condition]]]
) -> Condition | None:
    """The OR of each branch's conjuncts on ``columns``; ``None`` if a branch has none."""
    kept = [
        [(part, found) for part, found in branch if found.columns and found.columns <= columns]
        for branch in branches
    ]
    every = [found for branch in kept for _, found in branch]
    if not all(kept) or not all(found.usable and found.sql for found in every):
        return None
    text = " OR ".join(
        "(" + " AND ".join(f"({found.sql})" for _, found in branch) + ")" for branch in kept
    )
    joined = _joined(
        [_joined([found.pieces for _, found in branch], " AND ") for branch in kept], " OR "
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
        and all(any(is_null_rejecting(part.unnest()) for part, _ in branch) for branch in kept),
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
