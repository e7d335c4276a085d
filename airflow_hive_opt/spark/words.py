"""What Spark says when it fails, without the stack of its JVM."""

from __future__ import annotations

import re

_RPC = re.compile(r'<\w*RPC\w* of RPC .*?^\s*details = "(.*?)"$', re.DOTALL | re.MULTILINE | re.I)


def in_words(error: Exception) -> str:
    r"""The message of a Spark error for people.

    >>> in_words(ValueError('<_InactiveRpcError of RPC that ended:\n\tdetails = "no route"\n>'))
    'no route'
    """
    text = str(error).partition("JVM stacktrace")[0]
    if lost := _RPC.match(text):
        return lost[1]
    return text.partition("\n'")[0].partition("\n+-")[0].strip()  # without the plan it may show
