"""The words of a text, without parsing it."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


def words(sql: str) -> frozenset[str]:
    """Every word of the text, in lower case, quoted or not.

    Words in strings and comments count too: what ends a comment differs between parsers, and a name
    too many does no harm to callers that look every name up.

    >>> sorted(words("SELECT `Wanted Day`, dw.f /* of mine */ (2)"))
    ['2', 'day', 'dw', 'f', 'mine', 'of', 'select', 'wanted', 'wanted day']
    """
    quoted = (name.replace("``", "`") for name in _QUOTED.findall(sql))
    # a quote may belong to a string or a comment
    return frozenset(word.lower() for word in (*_WORD.findall(sql), *quoted))
