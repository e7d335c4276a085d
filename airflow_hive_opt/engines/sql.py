"""A condition as SQL text; engines differ in their literals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal

from airflow_hive_opt.engines.conditions import And, Condition, IsBetween, Or
from airflow_hive_opt.engines.values import Value

Literal = Callable[[Value, str], str]
"""Writes a value of a Hive type."""


def sql_of(condition: Condition, literal: Literal, quote: Callable[[str], str]) -> str:
    """The condition as text. ``literal`` writes values, ``quote`` the names of columns.

    >>> from airflow_hive_opt.engines.conditions import IsIn
    >>> print(sql_of(IsIn("k", "string", ("it's",), null=True), standard_literal, quoted))
    ("k" IN ('it''s') OR "k" IS NULL)
    >>> sql_of(Or(()), standard_literal, quoted)
    '1 = 0'
    """
    if isinstance(condition, (And, Or)):
        parts = [sql_of(part, literal, quote) for part in condition.parts]
        return _joined(" AND " if isinstance(condition, And) else " OR ", parts)
    column = quote(condition.column)
    if isinstance(condition, IsBetween):
        low, high = (literal(end, condition.type) for end in (condition.low, condition.high))
        return f"{column} BETWEEN {low} AND {high}"
    values = ", ".join(literal(value, condition.type) for value in condition.values)
    found = [f"{column} IN ({values})"] if values else []
    return _joined(" OR ", [*found, *[f"{column} IS NULL"] * condition.null])


def standard_literal(value: Value, type_: str) -> str:
    """A literal of standard SQL for a value of a Hive type, except for times.

    >>> standard_literal(Decimal("1.20"), "decimal(5,2)"), standard_literal(True, "boolean")
    ("CAST('1.20' AS DECIMAL(5,2))", 'TRUE')
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {type_.upper()})"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return repr(value)


def text_literal(text: str) -> str:
    """A text in quotes, of which only quotes are escaped.

    >>> print(text_literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def clock_text(time: datetime) -> str:
    """A time without its time zone.

    >>> clock_text(datetime(2024, 1, 31, 10)), clock_text(datetime(2024, 1, 31, 0, 0, 0, 5))
    ('2024-01-31 10:00:00', '2024-01-31 00:00:00.000005')
    """
    return time.replace(tzinfo=None).isoformat(" ")


def _joined(word: str, parts: Iterable[str]) -> str:
    found = list(parts)
    if not found:
        return "1 = 0"
    return found[0] if len(found) == 1 else f"({word.join(found)})"
