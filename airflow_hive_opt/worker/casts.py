"""Casts texts to types, but only texts that all readers convert to the same value."""

from __future__ import annotations

import re

from airflow_hive_opt.worker.translation.typed import identifier
from airflow_hive_opt.worker.types import MOST_DIGITS, sql_type
from airflow_hive_opt.worker.unanswered import NotUnderstood

FIRST, LAST = "DATE '1582-10-15'", "DATE '9999-12-31'"
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def value_of_text(sql: str, hive: str) -> str:
    """The value of a text in Spark's own form, and NULL for any other text.

    ``sql`` is a VARCHAR, ``hive`` the type. Raises :class:`NotUnderstood` for other types.
    """
    type_ = sql_type(hive)
    if type_ is None:
        raise NotUnderstood(f"the type {hive}")
    if hive == "string":
        return sql
    if hive.startswith("varchar"):
        most = int(re.findall(r"\d+", hive)[0])
        return f"CASE WHEN length({sql}) <= {most} THEN {sql} END"
    cast = f"TRY_CAST({sql} AS {type_.duckdb})"
    if type_.is_integer:
        form = "0|-?[1-9][0-9]{0,18}"
    elif hive == "date":
        within = f"TRY_CAST({sql} AS DATE) BETWEEN {FIRST} AND {LAST}"
        form = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
        return f"CASE WHEN regexp_full_match({sql}, '{form}') AND {within} THEN {cast} END"
    elif hive == "boolean":
        form = "true|false"
    else:
        digits = f"(\\.[0-9]{{1,{type_.scale}}})?" if type_.scale else ""
        form = f"-?(0|[1-9][0-9]{{0,{MOST_DIGITS}}}){digits}"
    return f"CASE WHEN regexp_full_match({sql}, '{form}') THEN {cast} END"


def canonical(name: str, hive: str, null: str = "") -> str:
    """A column of texts as one of the type, under the same name.

    A text that is not in Spark's own form is an error, or NULL if it matches the regular expression
    ``null``.
    """
    column = identifier(name)
    value = value_of_text(column, hive)
    if value == column:
        return column
    wrong = f"error('a text for the type {hive} has an unusual form')"
    other = f"WHEN regexp_full_match({column}, '{null}') THEN NULL " if null else ""
    type_ = sql_type(hive)
    assert type_ is not None
    return (
        f"CAST(CASE WHEN {column} IS NULL THEN NULL WHEN ({value}) IS NOT NULL THEN {value} "
        f"{other}ELSE {wrong} END AS {type_.duckdb}) AS {column}"
    )


def in_calendar(name: str) -> str:
    """A column of dates under the same name; an error for days on which calendars differ."""
    column = identifier(name)
    within = f"{column} IS NULL OR {column} BETWEEN {FIRST} AND {LAST}"
    return f"CASE WHEN {within} THEN {column} ELSE error('a date is out of range') END AS {column}"
