"""Splits SQL text into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_hive_opt.statement.errors import PlanError, position

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*(?!\+).*?\*/)
  | (?P<hint>/\*\+.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:[LSYlsy]|BD|bd)?(?![A-Za-z_0-9]))
  | (?P<word>\w+)
  | (?P<symbol><=>|<>|!=|==|<=|>=|\|\||&&|[-+*/%&|^~()\[\],.;=<>!:?])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of the SQL text: its kind, its text and its offsets."""

    kind: str
    text: str
    start: int
    stop: int

    @property
    def lower(self) -> str:
        """The text of a word or symbol in lower case; empty for all other tokens."""
        return self.text.lower() if self.kind in ("word", "symbol") else ""


def tokens(sql: str) -> list[Token]:
    """Returns the tokens of ``sql``, with an ``end`` token last; raises :class:`PlanError`.

    >>> [token.text for token in tokens("SELECT a.`key` -- why")]
    ['SELECT', 'a', '.', '`key`', '']
    """
    found = []
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None:
            raise PlanError("PARSE", f"Hive can't read {sql[at]!r} here", *position(sql, at))
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match.group(), at, match.end()))
        at = match.end()
    found.append(Token("end", "", len(sql), len(sql)))
    return found


def number_type(text: str) -> str:
    """Returns Hive's type of a numeric literal, by its suffix and form."""
    suffix = text[-1].lower()
    if suffix in "lsy":
        return {"l": "bigint", "s": "smallint", "y": "tinyint"}[suffix]
    if suffix == "d":
        return "decimal"
    return "double" if any(mark in text.lower() for mark in ".e") else "int"
