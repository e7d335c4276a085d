"""Quoting of identifiers in SQL text."""

from __future__ import annotations


def quote(name: str) -> str:
    """An identifier in backquotes.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_table(name: str) -> str:
    """``database.table``, or a name without a database, in backquotes.

    >>> quote_table("dw.sales"), quote_table("sales")
    ('`dw`.`sales`', '`sales`')
    """
    database, _, short = name.rpartition(".")
    return f"{quote(database)}.{quote(short)}" if database else quote(short)
