"""Finds settings under which Spark reads a statement differently from the planner."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from airflow_hive_opt.statement.parse import has_doubled_quote

CONSECUTIVE_LITERALS = "spark.sql.legacy.consecutiveStringLiterals.enabled"
# Setting, the value that changes the meaning, and patterns for the texts that it affects, one after
# the other. One pattern of two parts would search the rest of the text from every comma.
_SETTINGS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("spark.sql.caseSensitive", "true", ()),
    ("spark.sql.path.enabled", "true", ()),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "true", ('"',)),
    ("spark.sql.parser.quotedRegexColumnNames", "true", ("`",)),
    ("spark.sql.parser.escapedStringLiterals", "true", (r"\\",)),
    ("spark.sql.ansi.relationPrecedence", "true", (",", r"\bjoin\b")),
    ("spark.sql.legacy.setopsPrecedence.enabled", "true", (r"\bintersect\b",)),
    ("spark.sql.legacy.ctePrecedencePolicy", "legacy", (r"\bwith\b", r"\bwith\b")),
    ("spark.sql.legacy.parser.havingWithoutGroupByAsWhere", "true", (r"\bhaving\b",)),
)


def setting_that_differs(
    sql: str, setting: Callable[[str], str | None], joins_literals: bool
) -> str | None:
    """The setting under which Spark reads the statement differently; else ``None``.

    ``setting`` gives a setting's value in effect, ``None`` for Spark's default. ``joins_literals``
    says that Spark reads ``'0''8'`` as 08.
    """
    for name, value, patterns in _SETTINGS:
        if has_in_order(sql, patterns) and (setting(name) or "").lower() == value:
            return name
    return CONSECUTIVE_LITERALS if joins_literals and has_doubled_quote(sql) else None


def has_in_order(sql: str, patterns: Iterable[str]) -> bool:
    """Whether the text has a match of each pattern, in their order; reads the text once.

    >>> has_in_order("a JOIN b, c", [",", "join"]), has_in_order("a, b JOIN c", [",", "join"])
    (False, True)
    """
    at = 0
    for pattern in patterns:
        found = re.compile(pattern, re.IGNORECASE).search(sql, at)
        if found is None:
            return False
        at = found.end()
    return True
