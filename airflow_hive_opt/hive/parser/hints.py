"""The hint grammar: ``/*+ MAPJOIN(a, b), STREAMTABLE(c) */``."""

from __future__ import annotations

import re

from airflow_hive_opt.hive.parser.lexer import Token
from airflow_hive_opt.statement.errors import PlanError, position

_HINT = re.compile(r"\s*(\w+)\s*(?:\(([\w\s,.:`]*)\))?\s*(,|$)")

_KNOWN = ("mapjoin", "broadcastjoin", "streamtable", "hold_ddltime")


def parse_hints(sql: str, token: Token) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns the hints as names and arguments, in lower case.

    Raises :class:`PlanError` (Hive's 40000) for an unknown hint.
    """
    text = token.text[3:-2].strip()
    found = []
    at = 0
    while at < len(text):
        match = _HINT.match(text, at)
        if match is None or match[1].lower() not in _KNOWN:
            where = position(sql, token.start)
            message = f"can't read the hint {text!r}: MAPJOIN(...), STREAMTABLE(...) with commas"
            raise PlanError("SEMANTIC", message, *where, number=40000)
        arguments = (match[2] or "").lower().split(",")
        found.append(
            (match[1].lower(), tuple(name.strip(" `") for name in arguments if name.strip(" `")))
        )
        at = match.end()
    return tuple(found)
