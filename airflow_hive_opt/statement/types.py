"""Hive types whose values compare exactly, without a conversion."""

from __future__ import annotations

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def family(type_: str) -> str | None:
    """The family of types that compare exactly with each other, or ``None`` if there is none.

    >>> family("bigint"), family("string"), family("timestamp"), family("char(3)")
    ('integer', 'string', None, None)
    """
    if type_ in INTEGER_BITS:
        return "integer"
    return type_ if type_ in ("string", "date") else None
