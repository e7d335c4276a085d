"""Finds the clauses of MERGE that insert rows, by the statement's tokens.

>>> sql = "MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED AND s.v > 0 THEN INSERT *"
>>> [(sql[:found.at][-7:], found.condition.of(sql)) for found in insert_clauses(sql, 24)]
[('MATCHED', 's.v > 0')]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark

from airflow_hive_opt.statement.parse import Span

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_OPENING, _CLOSING = ("(", "CASE"), (")", "END")


@dataclass(frozen=True)
class InsertClause:
    """WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT.

    ``at`` is the position behind MATCHED or TARGET, ``condition`` that of its condition, if any.
    """

    at: int
    condition: Span | None


def insert_clauses(sql: str, after: int) -> Iterator[InsertClause]:
    """The clauses behind position ``after``, the end of MERGE's ON condition."""
    tokens = [token for token in Spark().tokenize(sql) if token.start >= after]
    words = ["" if token.token_type in _QUOTED else token.text.upper() for token in tokens]
    depth, outside = 0, []
    for at, word in enumerate(words):
        depth += (word in _OPENING) - (word in _CLOSING)
        if not depth and word not in _CLOSING:
            outside.append(at)
    for number, at in enumerate(outside):
        if words[at : at + 3] != ["WHEN", "NOT", "MATCHED"]:
            continue
        behind = at + 3
        if words[behind : behind + 2] == ["BY", "SOURCE"]:
            continue
        behind += 2 if words[behind : behind + 2] == ["BY", "TARGET"] else 0
        then = next(found for found in outside[number:] if words[found] == "THEN")
        condition = None
        if then > behind:  # AND is between
            condition = Span(tokens[behind + 1].start, tokens[then - 1].end + 1)
        yield InsertClause(tokens[behind - 1].end + 1, condition)
