"""The types whose values the worker compares exactly as Spark does.

There is no timestamp, whose value depends on a time zone; no float or double, which have NaN and
two zeros; and no char, which is padded. A varchar is a string for Spark too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_hive_opt.statement.types import INTEGER_BITS

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_VARCHAR = re.compile(r"varchar\(\d+\)")
MOST_DIGITS = 38
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DUCKDB = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "string": "VARCHAR",
    "date": "DATE",
    "boolean": "BOOLEAN",
    "void": "INTEGER",
}


@dataclass(frozen=True)
class SqlType:
    """A type by Spark's name for it: ``int``, ``decimal(5,2)``; ``void`` is that of NULL."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def duckdb(self) -> str:
        """DuckDB's name of the type.

        >>> decimal(5, 2).duckdb, BIGINT.duckdb
        ('DECIMAL(5,2)', 'BIGINT')
        """
        return _DUCKDB.get(self.name) or f"DECIMAL({self.precision},{self.scale})"

    @property
    def is_integer(self) -> bool:
        """Whether the type is tinyint, smallint, int or bigint."""
        return self.name in INTEGER_BITS

    @property
    def is_decimal(self) -> bool:
        """Whether the type is a decimal."""
        return self.precision > 0


def decimal(precision: int, scale: int) -> SqlType:
    """The type ``decimal(precision,scale)``."""
    return SqlType(f"decimal({precision},{scale})", precision, scale)


INT, BIGINT, STRING, DATE, BOOLEAN, VOID = map(
    SqlType, ("int", "bigint", "string", "date", "boolean", "void")
)


def sql_type(hive: str) -> SqlType | None:
    """The type of a column; ``None`` if the worker does not evaluate it.

    >>> sql_type("varchar(3)").name, sql_type("decimal(5,2)").name, sql_type("timestamp")
    ('string', 'decimal(5,2)', None)
    """
    if hive in INTEGER_BITS or hive in ("string", "date", "boolean"):
        return SqlType(hive)
    if _VARCHAR.fullmatch(hive):
        return STRING
    found = _DECIMAL.fullmatch(hive)
    if hive == "decimal":
        return decimal(10, 0)
    return decimal(int(found[1]), int(found[2])) if found else None


def common_type(types: Iterable[SqlType]) -> SqlType | None:
    """The type as which values of all ``types`` compare exactly; ``None`` if there is none.

    >>> common_type([INT, BIGINT]).name, common_type([INT, decimal(5, 2)]).name
    ('bigint', 'decimal(12,2)')
    >>> common_type([STRING, INT])
    """
    known = [type_ for type_ in dict.fromkeys(types) if type_ != VOID]
    if not known:
        return VOID
    if len(known) == 1:
        return known[0]
    if all(type_.is_integer for type_ in known):
        return max(known, key=lambda type_: INTEGER_BITS[type_.name])
    if not all(type_.is_integer or type_.is_decimal for type_ in known):
        return None
    scale = max(type_.scale for type_ in known)
    whole = max(_DIGITS.get(type_.name, type_.precision - type_.scale) for type_ in known)
    return decimal(whole + scale, scale) if whole + scale <= MOST_DIGITS else None
