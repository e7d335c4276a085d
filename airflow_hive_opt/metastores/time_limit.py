"""A time limit for work that nothing can interrupt, such as a call into a library of C."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

_Found = TypeVar("_Found")


def within(seconds: float, work: Callable[[], _Found], name: str) -> _Found:
    """The result of ``work``, which another thread of this name does; raises its errors.

    Raises ``TimeoutError`` after ``seconds``. The thread then goes on, but does not keep the
    process from ending.

    >>> within(10, lambda: 1, "one")
    1
    """
    answer: Future[_Found] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller must get it
            answer.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    wait([answer], seconds)
    if not answer.done():
        raise TimeoutError(f"{name} has not answered in {seconds:g} s")
    return answer.result()
