"""Values and names in log lines: nothing that they hold may act on the log or who reads it."""

from __future__ import annotations

import re
import unicodedata

# Control characters, what breaks lines, and what changes the direction of writing.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Airflow folds the lines between these.
_GROUP = re.compile(r"::(group|endgroup)::", re.IGNORECASE)


def plain(text: str, keep: str = "") -> str:
    r"""``text`` with every acting character written as its escape, but for those of ``keep``.

    >>> print(plain("a\nb\x1b[31m\u2028::endgroup::"))
    a\nb\x1b[31m\u2028:\:endgroup:\:
    >>> plain("a\nb", keep="\n")
    'a\nb'
    """
    if text.isascii() and text.isprintable():
        shown = text
    else:
        shown = "".join(_shown(each, keep) for each in text)
    return _GROUP.sub(r":\\:\1:\\:", shown)


def _shown(character: str, keep: str) -> str:
    if character in keep or unicodedata.category(character) not in _ACTING:
        return character
    return character.encode("unicode_escape").decode("ascii")
