"""Lets Airflow log an exception's message without its stack.

Airflow logs the stack of every exception that fails a task. The message of a closed gate or of a
rejected statement says all there is to say: the stack would only name Airflow's code and this
package's, and hide the message.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from importlib.util import find_spec
from typing import Any, TypeVar

HAS_STRUCTLOG = find_spec("structlog") is not None
"""Whether Airflow logs by structlog, which it does since 3.0."""

E = TypeVar("E", bound=BaseException)
_MARK = "_message_says_all"


def without_stack(error: E) -> E:
    """Marks ``error``; before Airflow 3.0, this changes nothing."""
    if HAS_STRUCTLOG:
        import structlog

        processors = structlog.get_config()["processors"]
        if _cut not in processors:
            processors.insert(0, _cut)
        setattr(error, _MARK, True)
    return error


def _cut(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: puts the message of a marked exception in place of its stack."""
    error = sys.exc_info()[1]
    if event.get("exc_info") and getattr(error, _MARK, False):
        del event["exc_info"]
        event["event"] = f"{event.get('event')}: {error}"
    return event
