"""Quoting of identifiers in SQL text."""

from __future__ import annotations

import re

BARE = re.compile(r"[A-Za-z0-9_.-]+")
"""Text that is the same in a literal and in a partition's name: nothing in it is ever escaped."""


def quote(name: str) -> str:
    """An identifier in backquotes.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_table(name: str) -> str:
    """A table's name of one or more parts, in backquotes.

    >>> quote_table("dw.sales"), quote_table("sales"), quote_table("lake.dw.sales")
    ('`dw`.`sales`', '`sales`', '`lake`.`dw`.`sales`')
    """
    return ".".join(map(quote, name.split(".")))
