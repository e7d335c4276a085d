"""Stops Spark's work when Airflow stops a task whose operator does not do it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_sigterm(stop: Callable[[], None]) -> Iterator[None]:
    """Calls ``stop`` before Airflow's own handler of SIGTERM, for the block.

    Airflow stops a task by SIGTERM, and its handler calls the operator's ``on_kill``. Its SQL
    operators have none. Without a handler of Airflow's, or in another thread, this does nothing.
    """
    before = signal.getsignal(signal.SIGTERM)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        stop()
        before(number, frame)

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
