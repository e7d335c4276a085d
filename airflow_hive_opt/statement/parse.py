"""Parses SQL text and records where conditions and subqueries are in the text.

Rewritings replace parts of the original text and keep the rest, so that Spark reads every
expression as the user wrote it. They use the syntax tree only to find the positions.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.dialects.hive import Hive
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from airflow_hive_opt.statement.errors import PlanError, TooComplex, position

_SPAN = "span"
# sqlglot warns of statements that it can't parse; this package reports them itself.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Span:
    """The characters of the SQL text from ``start`` up to, but not including, ``stop``."""

    start: int
    stop: int

    def of(self, sql: str) -> str:
        """The text that the span covers."""
        return sql[self.start : self.stop]


class _Spans:
    """Parser mix-in that stores the span of a node in the node's ``meta``.

    It does so for conditions and operands, table factors and CTEs, function calls, items of a list,
    queries and parentheses.
    """


def _noting_span(method: str) -> Any:
    def parse(self: Any, *args: Any, **kwargs: Any) -> Any:
        first = self._curr
        node = getattr(super(_Spans, self), method)(*args, **kwargs)
        if node is not None and first:
            node.meta[_SPAN] = Span(first.start, self._prev.end + 1)
        return node

    return parse


for _what in (
    *("statement", "select_or_expression", "cte", "bitwise", "disjunction", "expression"),
    *("function", "select", "paren", "equality", "table"),
):
    setattr(_Spans, f"_parse_{_what}", _noting_span(f"_parse_{_what}"))


class _HiveWithSpans(Hive):
    class Parser(_Spans, Hive.Parser):  # type: ignore[misc, valid-type]
        pass


class _SparkWithSpans(Spark):
    class Parser(_Spans, Spark.Parser):  # type: ignore[misc, valid-type]
        pass


# Features of Spark that change the text or refer to names in ways that the planner can't follow.
_UNSUPPORTED = (
    (re.compile(r"\$\{"), "the statement has a ${variable}"),
    (re.compile(r"\|>"), "the statement is written with pipes (|>)"),
    (re.compile(r"\\\r?\n"), "the statement has a line that ends in a backslash"),
    (re.compile(r"\bidentifier\s*\(", re.IGNORECASE), "the statement calls IDENTIFIER()"),
)
# The start of a statement that has a query; used where sqlglot could not parse it.
_HAS_QUERY = re.compile(r"\s*(select|with|from|insert|create\s.*\bas\s+select)\b", re.I | re.S)


def why_unsupported(sql: str) -> str | None:
    """Why the planner must not interpret this text, or ``None`` if it may.

    Spark may be able to run the text nevertheless.
    """
    return next((why for pattern, why in _UNSUPPORTED if pattern.search(sql)), None)


def has_doubled_quote(sql: str) -> bool:
    """Whether a literal contains a doubled quote, which Spark reads as one quote or as none.

    >>> has_doubled_quote("SELECT 'it''s'"), has_doubled_quote("SELECT '' = '' -- ''''")
    (True, False)
    """
    if "''" not in sql and '""' not in sql:  # tokens of a long text take a tenth of a second
        return False
    try:
        tokens = Spark().tokenize(sql)
    except TokenError:
        return False
    strings = [token for token in tokens if token.token_type is TokenType.STRING]
    return any(
        before.end + 1 == after.start and sql[before.end] == sql[after.start]
        for before, after in zip(strings, strings[1:])
    )


MOST_CHARACTERS = 300_000
"""The longest text that is parsed; a text of this length takes one to two seconds."""


def parse(sql: str) -> exp.Expr:
    """Parses the one statement in ``sql``, in Hive's dialect or else in Spark's.

    All callers with the same text share one tree and must not change it.

    Raises :class:`PlanError` with code ``PARSE`` if neither dialect can parse the text, or if it
    does not have exactly one statement, and :class:`TooComplex`.
    """
    found = _parsed(sql)
    if isinstance(found, PlanError):
        raise found.with_traceback(None) from None
    return found


def tree_of(sql: str) -> exp.Expr | None:
    """The tree that :func:`parse` returns, or ``None`` for a text that it can't parse."""
    found = _parsed(sql)
    return None if isinstance(found, PlanError) else found


@lru_cache(maxsize=8)
def _parsed(sql: str) -> exp.Expr | PlanError:
    """The tree, or why there is none: a text that can't be parsed is read only once too."""
    if len(sql) > MOST_CHARACTERS:
        return TooComplex(f"too long, with more than {MOST_CHARACTERS:,} characters,")
    try:
        return _tree(sql)
    except PlanError as error:
        return error
    except RecursionError:
        return TooComplex()


def _tree(sql: str) -> exp.Expr:
    try:
        statements = _HiveWithSpans().parse(sql)
    except (ParseError, TokenError) as error:
        try:
            statements = _SparkWithSpans().parse(sql)
        except (ParseError, TokenError):
            raise _parse_error(sql, error) from None
    trees = [
        tree for tree in statements if tree is not None and not isinstance(tree, exp.Semicolon)
    ]
    if len(trees) != 1:
        found = error_at(sql, trees[1], "") if trees else PlanError("PARSE", "")
        message = f"one SQL statement is expected, not {len(trees)}"
        raise PlanError("PARSE", message, found.line, found.column)
    if isinstance(trees[0], exp.Command) and _HAS_QUERY.match(sql):
        raise PlanError("PARSE", "the statement can't be parsed")
    return trees[0]


def span_of(node: exp.Expr) -> Span | None:
    """The node's position in the text, or ``None`` if the parser did not record it."""
    span: Span | None = node.meta.get(_SPAN)
    return span


def name_span(named: exp.Table | exp.Column) -> Span | None:
    """The position of a name with its qualifiers; ``None`` if not all parts are in the text."""
    parts = [part.meta for part in named.parts if isinstance(part, exp.Identifier)]
    if not parts or len(parts) < len(named.parts) or not all("start" in part for part in parts):
        return None
    return Span(parts[0]["start"], parts[-1]["end"] + 1)


def error_at(sql: str, node: exp.Expr, message: str) -> PlanError:
    """A ``SEMANTIC`` error that points at the first word of ``node``."""
    starts = [found.meta["start"] for found in node.find_all(exp.Expr) if "start" in found.meta]
    if not starts:
        return PlanError("SEMANTIC", message)
    return PlanError("SEMANTIC", message, *position(sql, min(starts)))


def _parse_error(sql: str, error: ParseError | TokenError) -> PlanError:
    if isinstance(error, TokenError):
        missing = re.search(r"Missing (.+) from \d+:(\d+)", str(error.__cause__))
        if missing:
            at = position(sql, int(missing[2]))
            return PlanError("PARSE", f"{missing[1]} is never closed", *at)
        return PlanError("PARSE", "the statement contains characters that can't be read")
    first = error.errors[0]
    word = first.get("highlight") or ""
    column = max(1, first["col"] - max(len(word) - 1, 0))
    incomplete = re.search(r"missing for <class '.*\.(\w+)'>", first["description"])
    message = (
        f"incomplete {incomplete[1].upper()}"
        if incomplete
        else re.split(" / | but got <", first["description"])[0].rstrip(".").lower()
    )
    return PlanError("PARSE", f"{message} near {word!r}", first["line"], column)
