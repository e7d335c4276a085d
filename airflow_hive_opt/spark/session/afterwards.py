"""What is asked of Spark once a statement has run: it must not fail a run that did its work."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")


def told(ask: Callable[[], T]) -> T | None:
    """What ``ask`` gives; ``None``, with a line in the log, where that fails.

    A retry would run a statement again that has written its rows.
    """
    try:
        return ask()
    except Exception as error:
        log.warning("the report goes without a figure: %s", error, exc_info=log.isEnabledFor(10))
        return None
