"""``SET name=value;`` lines before a statement, and scripts of several statements."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SET = re.compile(
    r"\s*(?:(?:--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)\s*)*set\s+([\w.]+)\s*=\s*([^;]*?)\s*;",
    re.IGNORECASE | re.DOTALL,
)

# A semicolon in a string, a name in backquotes or a comment ends no statement. Comments in brackets
# may be nested; raw strings have no escapes.
_TOKEN = re.compile(
    r"""(?P<space>\s+|--(?:\\\n|[^\n])*)|(?P<comment>/\*)|(?P<end>;)|[rR](?:'[^']*'|"[^"]*")"""
    r"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\w+|.""",
    re.DOTALL,
)
_MOST_WORDS = 3  # label : BEGIN
_BEFORE_A_MARKER = ("SELECT", "VALUES", "(")  # :begin is a parameter after these
_BRACKET = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class ScriptStatement:
    """One statement of a script, and the spaces that keep its lines and columns in the script."""

    before: str
    text: str


def split_statements(script: str) -> list[ScriptStatement]:
    r"""The statements of a script, which semicolons end, as they are written.

    A compound statement, ``BEGIN ... END`` with or without a label, has semicolons of its own: it
    goes to the script's end.

    >>> script = "SET a=b; -- one; more\nSELECT ';' /* ; /* ; */ ; */;\n;"
    >>> [found.text for found in split_statements(script)]
    ['SET a=b', "-- one; more\nSELECT ';' /* ; /* ; */ ; */"]
    >>> split_statements("USE a;\n  USE b")[1]
    ScriptStatement(before='      \n  ', text='USE b')
    """
    found, start, at = [], 0, 0
    first: list[str] = []  # the first words, as many as tell whether it is a compound statement
    while match := _TOKEN.match(script, at):
        at = _end_of_comment(script, match.end()) if match["comment"] else match.end()
        if match["end"]:
            found += _statement(script, start, match.start()) if first else []
            start, first = at, []
        elif not (match["space"] or match["comment"] or len(first) == _MOST_WORDS):
            first.append(match[0].upper())
            is_labelled = first[1:] == [":", "BEGIN"] and first[0] not in _BEFORE_A_MARKER
            if first == ["BEGIN"] or is_labelled:
                break
    return found + (_statement(script, start, len(script)) if first else [])


def _statement(script: str, start: int, stop: int) -> list[ScriptStatement]:
    text = script[start:stop]
    start += len(text) - len(text.lstrip())
    return [ScriptStatement(re.sub(r"[^\n]", " ", script[:start]), text.strip())]


def _end_of_comment(script: str, at: int) -> int:
    """Where a comment in brackets ends, whose content begins at ``at``."""
    depth = 1
    while depth and (found := _BRACKET.search(script, at)):
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return len(script) if depth else at


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
