"""Identifiers as SQL text."""

from __future__ import annotations


def quote(name: str) -> str:
    """An identifier in backquotes.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_table(name: str) -> str:
    """``db.table`` with each part in backquotes.

    >>> quote_table("dw.sales")
    '`dw`.`sales`'
    """
    return ".".join(map(quote, name.split(".")))
