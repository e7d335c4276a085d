"""The message of a Spark error, without the stack trace of its JVM."""

from __future__ import annotations

import re

from airflow_hive_opt.runtime.log_text import plain

_RPC = re.compile(r'<\w*RPC\w* of RPC .*?^\s*details = "(.*?)"$', re.DOTALL | re.MULTILINE | re.I)


def in_words(error: Exception) -> str:
    r"""The message of a Spark error for users.

    >>> in_words(ValueError('<_InactiveRpcError of RPC that ended:\n\tdetails = "no route"\n>'))
    'no route'
    """
    text = str(error).partition("JVM stacktrace")[0]
    lost = _RPC.match(text)
    told = lost[1] if lost else text.partition("\n'")[0].partition("\n+-")[0]  # without the plan
    return plain(told.strip(), keep="\n")
