"""Settings under which Spark reads a statement in another way than the planner does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_hive_opt.spark.session_conf import in_effect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LITERALS = "spark.sql.legacy.consecutiveStringLiterals.enabled"
# Each with the value that changes something, and with the text that it changes something of.
_SETTINGS = (
    ("spark.sql.caseSensitive", "true", ""),
    ("spark.sql.path.enabled", "true", ""),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "true", '"'),
    ("spark.sql.parser.quotedRegexColumnNames", "true", "`"),
    ("spark.sql.parser.escapedStringLiterals", "true", r"\\"),
    ("spark.sql.ansi.relationPrecedence", "true", r",.*\bjoin\b"),
    ("spark.sql.legacy.setopsPrecedence.enabled", "true", r"\bintersect\b"),
    ("spark.sql.legacy.ctePrecedencePolicy", "legacy", r"\bwith\b.*\bwith\b"),
    ("spark.sql.legacy.parser.havingWithoutGroupByAsWhere", "true", r"\bhaving\b"),
)
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|`[^`]*`|(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?P<next>['"])?""",
    re.DOTALL,
)


def other_reading(session: SparkSession, sql: str) -> str | None:
    """What in the session makes the statement mean something else than to the planner."""
    for name, value, pattern in _SETTINGS:
        if re.search(pattern, sql, re.DOTALL | re.IGNORECASE) and (
            (in_effect(session, name) or "").lower() == value
        ):
            return name
    # before Spark 4.0 there is no such setting, and no other reading
    if has_doubled_quote(sql) and (in_effect(session, _LITERALS) or "true").lower() == "true":
        return _LITERALS
    if (catalog := session.catalog.currentCatalog()) != "spark_catalog":
        return f"the current catalog {catalog}"
    return None


def has_doubled_quote(sql: str) -> bool:
    """Whether a literal has its quote twice in it, which may mean one quote or none.

    >>> has_doubled_quote("SELECT 'it''s'"), has_doubled_quote("SELECT '' = '' -- ''''")
    (True, False)
    """
    return any(found["next"] for found in _TOKEN.finditer(sql))
