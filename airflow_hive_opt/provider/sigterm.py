"""Stops Spark's work when Airflow stops a task whose operator does not do it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class _Handler:
    """Calls all of ``stops`` and then ``before``, the handler that it replaces."""

    def __init__(self, before: Callable[[int, FrameType | None], object]) -> None:
        self.before = before
        self.stops: list[Callable[[], None]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        for stop in tuple(self.stops):
            stop()
        self.before(number, frame)


@contextmanager
def on_sigterm(stop: Callable[[], None]) -> Iterator[None]:
    """Calls ``stop`` before Airflow's own handler of SIGTERM, for the block.

    Airflow stops a task by SIGTERM, and its handler calls the operator's ``on_kill``. Its SQL
    operators have none. Without a handler of Airflow's, or in another thread, this does nothing.

    Blocks may end in any order and in any thread. Airflow's handler is back when the last one ends,
    unless that is in another thread: then this one stays and only calls Airflow's.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler) or not _in_main_thread():
        yield
        return
    own = handler if isinstance(handler, _Handler) else _Handler(handler)
    signal.signal(signal.SIGTERM, own)
    own.stops.append(stop)
    try:
        yield
    finally:
        own.stops.remove(stop)
        is_last = not own.stops and signal.getsignal(signal.SIGTERM) is own
        if is_last and _in_main_thread():
            signal.signal(signal.SIGTERM, own.before)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
