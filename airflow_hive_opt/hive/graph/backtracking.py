"""Translates expressions from one operator of Hive's graph to another."""

from __future__ import annotations

from airflow_hive_opt.hive.graph.operator_graph import Join, Operator
from airflow_hive_opt.hive.parser.syntax import Column, Expression, rewritten, walk


def substitute(expression: Expression, columns: dict[str, Expression | None]) -> Expression | None:
    """Replaces the columns of ``expression``; ``None`` if a column has no replacement.

    >>> from airflow_hive_opt.hive.parser.syntax import Call
    >>> a, b = Column("a"), Column("b")
    >>> substitute(Call(">", (a, a)), {"a": b}) == Call(">", (b, b))
    True
    """
    found = {column: columns.get(column.name) for column in columns_of(expression)}
    if None in found.values():
        return None
    return rewritten(expression, lambda part: found.get(part) if isinstance(part, Column) else None)


def through(expression: Expression, operator: Operator) -> Expression | None:
    """Translates an expression over ``operator``'s output to its input; ``None`` if impossible."""
    if operator.expressions is None:
        return expression
    return substitute(expression, operator.expressions)


def columns_of(expression: Expression) -> list[Column]:
    """Returns the columns that an expression reads, each once, in order."""
    return list(dict.fromkeys(part for part in walk(expression) if isinstance(part, Column)))


def backtrack(
    expression: Expression | None, operator: Operator, terminal: Operator
) -> Expression | None:
    """Translates an expression over ``operator``'s input to ``terminal``'s output.

    Returns ``None`` if an operator in between computes the value, or if the path does not lead to
    ``terminal``.
    """
    while expression is not None and operator is not terminal:
        if len(operator.parents) != 1:
            return None
        parent = operator.parents[0]
        if parent is terminal:
            return expression
        if isinstance(parent, Join):
            return _through_join(expression, parent, terminal)
        expression = through(expression, parent)
        operator = parent
    return expression


def _through_join(expression: Expression, join: Join, terminal: Operator) -> Expression | None:
    tags = {join.sources[column.name] for column in columns_of(expression)}
    if len(tags) != 1:
        return None
    below = through(expression, join)
    if below is None:
        return None
    parent = join.parents[tags.pop()]
    return below if parent is terminal else backtrack(through(below, parent), parent, terminal)
