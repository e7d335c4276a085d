"""The message of a Spark error, without the stack trace of its JVM."""

from __future__ import annotations

import re

from airflow_hive_opt.documents.log_text import plain

_RPC = re.compile(r'<\w*RPC\w* of RPC .*?^\s*details = "(.*?)"$', re.DOTALL | re.MULTILINE | re.I)
_JAVA = re.compile(
    r"An error occurred while calling \S+\n: (?:[\w$]+\.)*([\w$]+)(.*?)(?:\n\tat |\Z)", re.DOTALL
)
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+): (\S.*)$", re.M)
# A class or a method that another version of Spark or Scala has.
_OTHER_VERSION = re.compile(
    r"(NoClassDefFound|NoSuchMethod|IncompatibleClassChange|AbstractMethod)Error"
)
# Hive 4 does not have the call any more, with which the client of Hive 2.3 begins.
_OLD_CLIENT = re.compile(r"Invalid method name: 'get_table'")


def in_words(error: BaseException) -> str:
    r"""The message of a Spark error for users.

    >>> in_words(ValueError('<_InactiveRpcError of RPC that ended:\n\tdetails = "no route"\n>'))
    'no route'
    >>> java = "An error occurred while calling o5.sql.\n: {}\n\tat org.Some.where(Some.java:7)"
    >>> in_words(ValueError(java.format("java.lang.IllegalStateException: no catalog")))
    'IllegalStateException: no catalog'
    >>> in_words(ValueError(java.format("java.lang.NoClassDefFoundError: scala/SeqOps")))
    'NoClassDefFoundError: scala/SeqOps. Is a jar for another version of Spark or Scala?'
    >>> print(in_words(ValueError("Invalid method name: 'get_table'")))
    Invalid method name: 'get_table'. For Hive 4, set spark.sql.hive.metastore.version and its jars
    >>> cause = "\n\tat org.Some.where(Some.java:7)\nCaused by: java.net.SomeException: timed out"
    >>> in_words(ValueError(java.format("java.io.IOException: no answer") + cause))
    'IOException: no answer, caused by SomeException: timed out'
    """
    text = str(error).partition("JVM stacktrace")[0]
    if lost := _RPC.match(text):
        told = lost[1]
    elif java := _JAVA.match(text):
        told = f"{java[1]}{java[2]}"
        if _OTHER_VERSION.match(told):
            told += ". Is a jar for another version of Spark or Scala?"
        else:
            causes = _CAUSE.findall(text)
            told += "".join(
                f", caused by {kind}: {why}" for kind, why in causes[-1:] if why not in told
            )
    else:
        told = text.partition("\n'")[0].partition("\n+-")[0]  # without the plan
    if _OLD_CLIENT.search(told):
        hint = "For Hive 4, set spark.sql.hive.metastore.version and its jars"
        told = f"{told.strip()}. {hint}"
    return plain(told.strip(), keep="\n")
