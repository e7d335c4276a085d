"""Settings under which Spark reads a statement in another way than the planner does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_hive_opt.spark.session.session_conf import in_effect
from airflow_hive_opt.statement.parse import has_doubled_quote

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


def other_reading(session: SparkSession, sql: str) -> str | None:
    """What in the session makes the statement mean something else than to the planner."""
    for name, value, pattern in _SETTINGS:
        if re.search(pattern, sql, re.DOTALL | re.IGNORECASE) and (
            (in_effect(session, name) or "").lower() == value
        ):
            return name
    if has_doubled_quote(sql) and _joins_literals(session):
        return _LITERALS
    if (catalog := session.catalog.currentCatalog()) != "spark_catalog":
        return f"the current catalog {catalog}"
    return None


def _joins_literals(session: SparkSession) -> bool:
    """Whether ``'0''8'`` is 08; before Spark 4.0 it always is, whatever the setting says."""
    known = session.conf.isModifiable(_LITERALS)
    return not known or (in_effect(session, _LITERALS) or "").lower() == "true"
