"""The time that the planning of a statement may take.

Planning is about linear in the length of a statement. For the few texts that take long all the
same, the loops of the planner call :func:`check_budget`, and the statement passes through.

The time is that of this thread on a processor. Waiting for Spark or a metastore does not count, and
a busy machine or a cold Spark makes no statement pass through.

>>> with Budget(1, iter([0, 0.5, 2, 3]).__next__):
...     check_budget()
...     check_budget()
Traceback (most recent call last):
airflow_hive_opt.statement.budget.OverBudget: the planning takes more than 1 s
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar, Token


class OverBudget(Exception):
    """The planning has used up its time; caught where the statement can pass through."""


class Budget:
    """Seconds for all ``with`` blocks of the budget together; ``clock`` gives the time in seconds.

    A block belongs to the thread that enters it. It must not be entered inside itself.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.thread_time) -> None:
        self._seconds = seconds
        self._clock = clock
        self._used = 0.0
        self._began = 0.0
        self._token: Token[Budget | None] | None = None

    def __enter__(self) -> Budget:
        """Starts to count, and makes this the budget that :func:`check_budget` checks."""
        self._began = self._clock()
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Stops to count."""
        if self._token is not None:
            _current.reset(self._token)
        self._used += self._clock() - self._began

    def check(self) -> None:
        """Raises :class:`OverBudget` if the time is used up."""
        if self._used + self._clock() - self._began >= self._seconds:
            raise OverBudget(f"the planning takes more than {self._seconds} s")


_current: ContextVar[Budget | None] = ContextVar("planning budget", default=None)


def check_budget() -> None:
    """Raises :class:`OverBudget` if there is a budget here and its time is used up."""
    if (budget := _current.get()) is not None:
        budget.check()
