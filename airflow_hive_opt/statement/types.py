"""Hive types whose values compare exactly, without a conversion."""

from __future__ import annotations

import re

TIMESTAMP = "timestamp"
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


# Types of which two equal values are identical: 0.0 equals -0.0, and a collation may ignore case.
_EXACT = re.compile(r"(?:tinyint|smallint|int|bigint|string|date|boolean|timestamp|decimal\(.*\))$")


def is_exact(type_: str) -> bool:
    """Whether two equal values of the type are identical; ``False`` for an unknown type.

    >>> is_exact("decimal(5,2)"), is_exact("double"), is_exact("string collate UTF8_LCASE")
    (True, False, False)
    """
    return _EXACT.match(type_) is not None


def family(type_: str) -> str | None:
    """The family of types that compare exactly with each other, or ``None`` if there is none.

    >>> family("bigint"), family("string"), family("timestamp"), family("char(3)")
    ('integer', 'string', None, None)
    """
    if type_ in INTEGER_BITS:
        return "integer"
    return type_ if type_ in ("string", "date") else None
