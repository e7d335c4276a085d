"""A statement without what differs between the runs of a task: its literals and comments."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from functools import lru_cache

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from airflow_hive_opt.statement.parse import MOST_CHARACTERS

_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.RAW_STRING,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.NATIONAL_STRING,
    }
)
# A row of literals may have another length in each run, and so may a row of tuples of them.
_LIST = re.compile(r"((?:DATE |TIMESTAMP |TIMESTAMP_NTZ )?\?)(?:(?: ,)? \1)+")
_TUPLES = re.compile(r"(\( \? \))(?: , \1)+")


@lru_cache(maxsize=8)  # a run asks several times
def template_digest(sql: str) -> str:
    r"""A digest that is the same for all statements that a template may give.

    Names count, with their quotes and in their case. A text without tokens counts as it is, and so
    does one that is too long to be planned.

    >>> days = "SELECT * FROM t WHERE d = '2026-01-01'", "-- a\nSELECT * FROM t WHERE d = \"it's\""
    >>> len(set(map(template_digest, days)))
    1
    >>> lists = "a IN (1, 2.5, 'x')", "a IN (-7)", "a IN (DATE '2026-01-01', DATE '2026-01-02')"
    >>> [template_digest(each) == template_digest("a IN (7)") for each in lists]
    [True, True, False]
    >>> template_digest("SELECT * FROM `2025`") == template_digest("SELECT * FROM `2026`")
    False
    """
    text = sql
    if len(sql) <= MOST_CHARACTERS:
        with suppress(TokenError):
            text = " ".join(_words(Spark().tokenize(sql)))
    text = _TUPLES.sub(r"\1", _LIST.sub(r"\1", text))
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]


def _words(tokens: list[Token]) -> list[str]:
    words: list[str] = []
    for token in tokens:
        if token.token_type in _LITERALS:
            if words and words[-1] == "-":  # a sign, or a difference in all runs alike
                words.pop()
            words.append("?")
        elif token.token_type is TokenType.IDENTIFIER:
            words.append(f"`{token.text}`")
        else:
            words.append(token.text)
    return words
