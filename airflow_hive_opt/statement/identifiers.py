"""Quoting of identifiers in SQL text."""

from __future__ import annotations


def quote(name: str) -> str:
    """An identifier in backquotes.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
