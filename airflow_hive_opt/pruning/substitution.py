"""Rewrites a condition for other columns: columns below a SELECT, or equal columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_hive_opt.pruning.query import (
    ColumnRef,
    Condition,
    Operand,
    Pieces,
    Projection,
    pieces_of,
)
from airflow_hive_opt.statement.budget import check_budget


def substituted(condition: Condition, by: Mapping[ColumnRef, Projection]) -> Condition | None:
    """The condition with every column replaced by its expression in ``by``.

    ``None`` if the condition depends on more than its columns, or if a column has no expression.

    >>> y, d = ColumnRef("t", "y"), ColumnRef("d", "d")
    >>> below = Projection("y", None, frozenset({d}), "year(d.d)", ("year(", d, ")"))
    >>> pieces = (y, " > 1")
    >>> found = Condition("y > 1", frozenset({y}), True, True, True, sql="`t`.y > 1", pieces=pieces)
    >>> substituted(found, {y: below}).sql
    '(year(d.d)) > 1'
    """
    check_budget()
    used, strict = [], True
    for column in condition.columns:
        found = by.get(column)
        if found is None or not found.sql:
            return None
        used.append(found)
        strict = strict and found.strict
    if not used or not condition.usable or not condition.pieces:
        return None
    text, pieces = _replaced(condition.pieces, by)
    operands = condition.operands
    return replace(
        condition,
        text=text,
        sql=text,
        pieces=pieces,
        columns=frozenset().union(*[found.columns for found in used]),
        operands=(_operand(operands[0], by), _operand(operands[1], by)) if operands else None,
        # a NULL in any column makes the condition NULL or false, but not if it is an OR
        null_rejecting=condition.null_rejecting and not condition.implied and strict,
    )


def _replaced(pieces: Pieces, by: Mapping[ColumnRef, Projection]) -> tuple[str, Pieces]:
    """The new text and its pieces; these are empty if those of an expression are not known."""
    texts: list[str] = []
    parts: list[str | ColumnRef] = []
    known = True
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
            parts.append(piece)
            continue
        below = by[piece]
        known = known and bool(below.pieces)
        texts.append(below.sql if below.column else f"({below.sql})")
        parts += below.pieces if below.column else ("(", *below.pieces, ")")
    return "".join(texts), pieces_of(parts) if known else ()


def _operand(operand: Operand, by: Mapping[ColumnRef, Projection]) -> Operand:
    columns = frozenset().union(*[by[column].columns for column in operand.columns])
    return Operand(by[operand.column].column if operand.column else None, columns)
