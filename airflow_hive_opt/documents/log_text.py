"""Escapes values and names in log lines, so that they can't manipulate the log or a terminal."""

from __future__ import annotations

import re
import unicodedata

# Control characters, line separators, and characters that change the direction of writing.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Airflow's user interface folds the lines between these markers.
_GROUP = re.compile(r"::(group|endgroup)::", re.IGNORECASE)


def plain(text: str, keep: str = "") -> str:
    r"""``text`` with control characters and markers escaped, except the characters in ``keep``.

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


def counted(number: int, word: str) -> str:
    """``1 partition``, ``2 partitions``."""
    return f"{number:,} {word if number == 1 else word + 's'}"


def files_in_words(files: int, total: int | None) -> str:
    """``5 of 1,000 files``; without a known total ``5 files``."""
    return counted(files, "file") if total is None else f"{files:,} of {counted(total, 'file')}"
