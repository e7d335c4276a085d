"""What Spark says when it fails, without the stack of its JVM."""

from __future__ import annotations


def in_words(error: Exception) -> str:
    """The message of a Spark error for people."""
    text = str(error).partition("JVM stacktrace")[0]
    return text.partition("\n'")[0].partition("\n+-")[0].strip()  # without the plan it may show
