"""Finds settings under which Spark reads a statement differently from the planner."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.session_conf import in_effect
from airflow_hive_opt.spark.session.spark_compat import is_known_setting
from airflow_hive_opt.statement.parse import has_doubled_quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LITERALS = "spark.sql.legacy.consecutiveStringLiterals.enabled"
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


def why_read_differently(session: SparkSession, sql: str) -> str | None:
    """The setting or catalog that makes Spark read the statement differently; else ``None``."""
    for name, value, patterns in _SETTINGS:
        if has_in_order(sql, patterns) and (in_effect(session, name) or "").lower() == value:
            return name
    if _joins_literals(session) and has_doubled_quote(sql):
        return _LITERALS
    if is_remote(session) and (catalog := session.catalog.currentCatalog()) != "spark_catalog":
        return f"the current catalog {catalog}"
    return None


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


def _joins_literals(session: SparkSession) -> bool:
    """Whether Spark reads ``'0''8'`` as 08; before Spark 4.0 it always does."""
    return not is_known_setting(session, _LITERALS) or (
        (in_effect(session, _LITERALS) or "").lower() == "true"
    )
