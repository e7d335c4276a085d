"""``Typed``, a DuckDB expression with its Spark type, and functions that make one of a literal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from airflow_hive_opt.statement.types import INTEGER_BITS
from airflow_hive_opt.worker.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    MOST_DIGITS,
    STRING,
    VOID,
    SqlType,
    common_type,
    decimal,
)
from airflow_hive_opt.worker.unanswered import NotUnderstood

FIRST_DATE = date(1582, 10, 15)
"""Before it, Spark's calendar depends on settings and on who wrote a file."""
_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)")
_NUMBER = re.compile(r"(\d*)\.(\d*)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Typed:
    """``sql`` is in parentheses where needed; ``text`` is the value of a string literal."""

    sql: str
    type: SqlType
    text: str | None = None
    number: int | None = None

    def as_(self, type_: SqlType) -> str:
        """The SQL of the value as a wider type."""
        return self.sql if self.type == type_ else f"CAST({self.sql} AS {type_.duckdb})"


NULL = Typed("NULL", VOID)


def identifier(name: str) -> str:
    """A quoted name in DuckDB.

    >>> print(identifier('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> Typed:
    """A string literal; raises :class:`NotUnderstood` for characters that SQL can't have."""
    if "\0" in value or not value.isprintable():
        code = value.encode("utf-8", "surrogatepass").hex()
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotUnderstood("a text that is no valid Unicode") from None
        return Typed(f"decode(unhex('{code}'))", STRING, value)
    quoted = value.replace("'", "''")
    return Typed(f"CAST('{quoted}' AS VARCHAR)", STRING, value)


def integer(value: int, type_: SqlType | None = None) -> Typed:
    """An integer literal: INT or BIGINT by its size, as in Spark, or of ``type_``."""
    found = type_ or (INT if fits(value, INT) else BIGINT)
    if not fits(value, found):
        raise NotUnderstood("a number of that size")
    return Typed(f"CAST({value} AS {found.duckdb})", found, number=value)


def fits(value: int, type_: SqlType) -> bool:
    """Whether the integer type can hold the value."""
    bound = 1 << (INTEGER_BITS[type_.name] - 1)
    return -bound <= value < bound


def number(written: str, negative: bool = False) -> Typed:
    """The literal of an integer or of a decimal with a point.

    >>> print(number("1.50").sql, number("7", negative=True).sql)
    CAST('1.50' AS DECIMAL(3,2)) CAST(-7 AS INTEGER)
    """
    sign = "-" if negative else ""
    if re.fullmatch(r"\d+", written):
        return integer(int(sign + written))
    found = _NUMBER.fullmatch(written)
    if found is None or found[0] == ".":
        raise NotUnderstood(f"the number {written}")
    whole, fraction = found[1].lstrip("0"), found[2]
    precision = max(len(whole) + len(fraction), 1)
    if precision > MOST_DIGITS:
        raise NotUnderstood("a number with so many digits")
    type_ = decimal(precision, len(fraction))
    return Typed(f"CAST('{sign}{whole or '0'}.{fraction or '0'}' AS {type_.duckdb})", type_)


def day(value: date) -> Typed:
    """A date literal."""
    if value < FIRST_DATE:
        raise NotUnderstood(f"a date before {FIRST_DATE}")
    return Typed(f"DATE '{value.isoformat()}'", DATE)


def as_date(value: Typed) -> Typed:
    """The value as a date: itself, or the day that a text literal names in full.

    Spark converts such a text to the same day under all settings.
    """
    if value.type in (DATE, VOID):
        return value
    if value.text is None or not _DATE.fullmatch(value.text):
        raise NotUnderstood("a value that is no date in the place of one")
    try:
        return day(date.fromisoformat(value.text))
    except ValueError:
        raise NotUnderstood("a text that is no date in the place of one") from None


def alike(values: list[Typed]) -> tuple[list[str], SqlType]:
    """The SQL of values that are compared with each other, as one type, and that type.

    A text literal counts as a date or an integer if it is compared with one: of a text in Spark's
    own form, all settings make the same value. Raises :class:`NotUnderstood` for other types.
    """
    others = {value.type.name for value in values if value.text is None} - {"void"}
    if others == {"date"}:
        values = [as_date(value) for value in values]
    elif len(others) == 1 and others <= INTEGER_BITS.keys():
        values = [_as_integer(value, SqlType(min(others))) for value in values]
    type_ = common_type(value.type for value in values)
    if type_ is None:
        raise NotUnderstood("a comparison of values of unlike types")
    return [value.as_(type_) for value in values], type_


def _as_integer(value: Typed, type_: SqlType) -> Typed:
    if value.text is None:
        return value
    canonical = _INTEGER.fullmatch(value.text) and value.text != "-0"
    if not canonical or len(value.text) > 20 or not fits(int(value.text), type_):
        raise NotUnderstood("a comparison of a text with a number")
    return integer(int(value.text), type_)


def constant(value: object) -> Typed:
    """A parameter's value as a literal."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return Typed(str(value).lower(), BOOLEAN)
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, str):
        return text(value)
    if type(value) is date:
        return day(value)
    raise NotUnderstood(f"a parameter of type {type(value).__name__}")
