"""Resolves the select list and the group keys of a block."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import (
    AGGREGATES,
    is_deterministic,
    is_self_contained,
    is_strict,
    own_columns,
    qualified,
)
from airflow_hive_opt.pruning.output_columns import UNKNOWN, columns_of, output_name
from airflow_hive_opt.pruning.query import ColumnRef, Projection
from airflow_hive_opt.pruning.scope import Scope

_BEFORE_OVER = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def group_by(select: exp.Select, scope: Scope) -> tuple[Projection, ...] | None:
    """The group keys; empty for a single group of all rows, ``None`` without aggregation."""
    group = select.args.get("group")
    if group is None:
        return () if _aggregates(select) else None
    keys: list[Projection] = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.name.isdecimal():
            position = int(key.name) - 1
            named = projections(select, scope)
            keys.extend(named[position : position + 1])
        else:
            keys.append(_projection(key, output_name(key), scope))
    # ROLLUP, CUBE and GROUPING SETS put NULLs into key columns: no key stays unchanged.
    plain = not any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "totals"))
    return tuple(key if plain else replace(key, column=None) for key in keys)


def projections(select: exp.Select, scope: Scope) -> tuple[Projection, ...]:
    """The output columns in order; a star becomes its columns if they are known.

    A projection named ``*`` stands for any number of columns that are not known.
    """
    found: list[Projection] = []
    for node in select.expressions:
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star):
            found.extend(_star(node, star, scope))
        elif (name := output_name(node)) == UNKNOWN.name:
            found.append(UNKNOWN)
        else:
            found.append(_projection(node, name, scope))
    return tuple(found)


def _star(node: exp.Expr, star: exp.Star, scope: Scope) -> tuple[Projection, ...]:
    if scope.lenient or any(star.args.values()):
        return (UNKNOWN,)
    if not isinstance(node, exp.Column):
        return scope.output
    relation = scope.relations.get(node.table.lower())
    return (UNKNOWN,) if relation is None or scope.merged else columns_of(relation)


def _projection(node: exp.Expr, name: str, scope: Scope) -> Projection:
    bare = node.unalias().unnest()
    columns = set()
    for column in own_columns(bare):
        ref, _ = scope.resolve(column)
        if ref is not None:
            columns.add(ref)
    ref, itself = scope.resolve(bare) if isinstance(bare, exp.Column) else (None, False)
    unchanged, read = ref if itself else None, frozenset(columns)
    text, pieces = qualified(node.unalias(), scope.sql, scope) if columns else ("", ())
    if not text or not is_deterministic(text) or not is_self_contained(bare, scope):
        return Projection(name, unchanged, read)
    return Projection(name, unchanged, read, text, pieces, is_strict(bare))


def window_keys(select: exp.Select, scope: Scope) -> frozenset[ColumnRef] | None:
    """The columns by which every window function partitions; ``None`` without window functions."""
    parts = [*select.expressions, *filter(None, [select.args.get("qualify")])]
    windows = [
        found
        for part in parts
        for found in part.walk(prune=lambda inner: isinstance(inner, exp.Query))
        if isinstance(found, exp.Window)
    ]
    if not windows:
        return frozenset() if select.args.get("qualify") else None
    keys = [
        {
            ref
            for key in window.args.get("partition_by") or ()
            if isinstance(key, exp.Column)
            for ref, itself in [scope.resolve(key)]
            if ref is not None and itself
        }
        for window in windows
    ]
    return frozenset(set.intersection(*keys))


def _aggregates(select: exp.Select) -> bool:
    """Whether the select list has an aggregate that is neither in a subquery nor a window's."""
    return any(
        isinstance(found, AGGREGATES) and not _of_window(found)
        for expression in select.expressions
        for found in expression.walk(prune=lambda part: isinstance(part, exp.Query))
    )


def _of_window(aggregate: exp.Expr) -> bool:
    """Whether OVER follows the aggregate, possibly after FILTER or IGNORE NULLS."""
    node = aggregate
    while isinstance(node.parent, _BEFORE_OVER) and node.parent.this is node:
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.parent.this is node
