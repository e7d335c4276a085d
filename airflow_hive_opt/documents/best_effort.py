"""Reads figures from Spark after a statement has run; an error must not fail that run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")


def best_effort(ask: Callable[[], T]) -> T | None:
    """The result of ``ask``; ``None``, with a warning in the log, if ``ask`` fails.

    A failure here would cause a retry, which would run a statement again that has written rows.
    """
    try:
        return ask()
    except Exception as error:
        log.warning(
            "the report lacks a figure, because a call has failed: %s",
            error,
            exc_info=log.isEnabledFor(10),
        )
        return None
