"""``SET name=value;`` lines before a statement."""

from __future__ import annotations

import re

_SET = re.compile(
    r"\s*(?:(?:--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)\s*)*set\s+([\w.]+)\s*=\s*([^;]*?)\s*;",
    re.IGNORECASE | re.DOTALL,
)


def split_settings(text: str) -> tuple[dict[str, str], str]:
    r"""Returns the settings at the start of a script, and the script with spaces in their place.

    The spaces keep the lines and columns of the statement unchanged.

    >>> split_settings("SET hive.auto.convert.join=false;\nSELECT 1")
    ({'hive.auto.convert.join': 'false'}, '                                 \nSELECT 1')
    """
    found: dict[str, str] = {}
    at = 0
    while match := _SET.match(text, at):
        found[match[1]] = match[2]
        at = match.end()
    blank = re.sub(r"[^\n]", " ", text[:at])
    return found, blank + text[at:]
