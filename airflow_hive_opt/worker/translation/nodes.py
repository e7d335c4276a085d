"""Reads sqlglot's nodes strictly: an unexpected part raises ``NotUnderstood``."""

from __future__ import annotations

import re

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark

from airflow_hive_opt.statement.parse import span_of
from airflow_hive_opt.worker.unanswered import NotUnderstood

_CALL = re.compile(r"([\w`.]+)\s*\(")


def only(node: exp.Expr, *names: str) -> None:
    """Raises :class:`NotUnderstood` if the node has other parts than ``names``."""
    other = [name for name, value in node.args.items() if value and name not in names]
    if other:
        raise NotUnderstood(f"the part '{other[0].strip('_')}' of {type(node).__name__}")


def is_condition(node: exp.Expr) -> bool:
    """Whether only AND, OR and NOT are between the node and the clause that it is a condition of.

    Then it does not matter whether it is NULL or false, except below NOT.
    """
    above = node.parent
    while isinstance(above, (exp.Paren, exp.Not, exp.And, exp.Or)):
        above = above.parent
    return isinstance(above, (exp.Where, exp.Join, exp.Having))


def not_understood(node: exp.Expr, sql: str) -> NotUnderstood:
    """The error for a node that the worker does not evaluate."""
    span = span_of(node)
    return NotUnderstood(span.of(sql)[:80] if span else type(node).__name__)


def function_name(node: exp.Expr, sql: str) -> str:
    """The name by which the statement calls a function, in lower case; empty if it is not known."""
    span = span_of(node)
    found = _CALL.match(span.of(sql)) if span else None
    return found[1].replace("`", "").lower() if found else ""


def integer_of(node: exp.Expr) -> int:
    """The value of an integer literal, possibly with signs."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return -integer_of(node.this)
    if isinstance(node, exp.Mul):  # sqlglot reads date_sub(d, n) as d + n * -1
        return integer_of(node.this) * integer_of(node.expression)
    if isinstance(node, exp.Literal) and re.fullmatch(r"\d{1,9}", node.this):
        return int(node.this)
    raise NotUnderstood("an expression in the place of a whole number")


def doubtful_texts(sql: str) -> frozenset[str]:
    r"""The texts of literals that Spark's settings or version decide about.

    Those with a backslash, and those that stand side by side.

    >>> sorted(doubtful_texts(r"SELECT 'a\tb', 'c''d', 'e', 'f' 'g'"))
    ['a\tb', 'c', 'd', 'f', 'g']
    """
    if "\\" not in sql and not re.search(r"""["']\s*["']""", sql):
        return frozenset()
    tokens = Spark().tokenize(sql)
    found = set()
    for at, token in enumerate(tokens):
        if token.token_type is not TokenType.STRING:
            continue
        near = tokens[max(at - 1, 0) : at] + tokens[at + 1 : at + 2]
        beside = any(each.token_type is TokenType.STRING for each in near)
        if beside or "\\" in sql[token.start : token.end + 1]:
            found.add(token.text)
    return frozenset(found)
