"""Follows an application by its ID until it has ended. Nothing here blocks the event loop."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeVar

from airflow_hive_opt.provider.applications.cluster import Cluster, NoAnswer, NotKnown, close
from airflow_hive_opt.statement.text_enum import StrEnum

T = TypeVar("T")
SECONDS_TO_STOP = 25.0
"""For a user's stop of a task that waits itself."""

_PATIENCE = 3600.0  # seconds without an answer, after which nobody knows whether it runs
_LOOKS_UNTIL_GONE = 3  # a server that has just started may not know its applications yet
_SECONDS_BETWEEN_LINES = 300.0  # in the log, while nothing changes
_SECONDS_BETWEEN_KILLS = 1.0


class How(StrEnum):
    """How following an application ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It failed, or it was killed: it does not run any more."""
    LATE = "late"
    """The deadline passed, and the application was stopped."""
    LOST = "lost"
    """It may still run: the cluster does not know it, does not answer, or does not stop it."""


@dataclass(frozen=True)
class Ended:
    """The end of an application, or of what is known of it."""

    how: How
    message: str


async def follow(
    cluster: Cluster, id_: str, interval: float, deadline: datetime | None, log: Any
) -> Ended:
    """Waits until the application has ended; asks every ``interval`` seconds.

    At the ``deadline`` it stops the application. A cluster may be silent for an hour.
    """
    lines = _Lines(id_, log)
    answered, unknown = time.monotonic(), 0
    # the triggers that a triggerer starts with do not all ask at once
    await asyncio.sleep(random.uniform(0, interval))  # noqa: S311 - no secret
    while True:
        try:
            state = await cluster.state(id_)
        except NoAnswer as error:
            if time.monotonic() - answered > _PATIENCE:
                return Ended(How.LOST, f"{id_}: no answer for {_PATIENCE:,.0f} s: {error}")
            lines.silence(error)
        except NotKnown as error:
            answered, unknown = time.monotonic(), unknown + 1
            if unknown >= _LOOKS_UNTIL_GONE:
                return Ended(How.LOST, str(error))
        else:
            answered, unknown = time.monotonic(), 0
            lines.state(state.words)
            if state.ended:
                return Ended(How(state.ended), f"{id_}: {state.words}")
        if deadline is not None and datetime.now(timezone.utc) >= deadline:
            return await _stop_late(cluster, id_, log)
        await asyncio.sleep(interval)


async def stop(cluster: Cluster, id_: str, seconds: float, unknown: float = 0.0) -> Ended | None:
    """Stops the application and waits for its end; ``None`` if it may still run after that time.

    An application that its cluster does not know, for at least ``unknown`` seconds, is ``LOST``.
    """
    until, looks, gone_at = time.monotonic() + seconds, 0, 0.0
    while True:
        try:
            state = await cluster.state(id_)
            if state.ended:
                return Ended(How(state.ended), f"{id_}: {state.words}")
            looks = 0
            await cluster.kill(id_)
        except NotKnown as error:
            looks += 1
            if looks == 1:
                gone_at = time.monotonic() + unknown
                until = max(until, gone_at)
            if looks >= _LOOKS_UNTIL_GONE and time.monotonic() >= gone_at:
                return Ended(How.LOST, str(error))
        except NoAnswer:
            pass  # the next look may be answered
        if time.monotonic() >= until:
            return None
        await asyncio.sleep(_SECONDS_BETWEEN_KILLS)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work in a loop and a thread of its own.

    So a handler of SIGTERM may call it in the middle of another call.
    """

    async def and_close() -> T:
        try:
            return await work
        finally:
            await close()

    def in_thread() -> None:
        try:
            done.set_result(asyncio.run(and_close()))
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            done.set_exception(error)

    done: Future[T] = Future()
    threading.Thread(target=in_thread, name="ask-the-cluster", daemon=True).start()
    return done.result()


def stop_now(cluster: Cluster, id_: str, log: Any) -> None:
    """Stops the application for a user's stop; warns if it may still run after 25 seconds."""
    if run(stop(cluster, id_, SECONDS_TO_STOP)) is None:
        log.warning("%s may still run: the cluster does not stop it", id_)


async def _stop_late(cluster: Cluster, id_: str, log: Any) -> Ended:
    log.warning("the time of %s is over, so it is stopped", id_)
    stopped = await stop(cluster, id_, seconds=120.0)
    if stopped is None:
        return Ended(How.LOST, f"{id_}: its time is over, and it does not stop")
    if stopped.how is not How.FAILED:
        return stopped
    return Ended(How.LATE, f"{id_}: its time was over, so it was stopped")


class _Lines:
    """Log lines: one for each change, and one every few minutes without a change."""

    def __init__(self, id_: str, log: Any) -> None:
        self._id, self._log = id_, log
        self._last, self._since = "", 0.0

    def state(self, words: str) -> None:
        # the numbers of a running application change with each look
        self._say(words.partition(",")[0], self._log.info, "%s: %s", words)

    def silence(self, error: NoAnswer) -> None:
        self._say(
            "silence", self._log.warning, "%s may go on, but its cluster is silent: %s", error
        )

    def _say(self, what: str, log: Any, text: str, words: object) -> None:
        now = time.monotonic()
        if what != self._last or now - self._since >= _SECONDS_BETWEEN_LINES:
            log(text, self._id, words)
            self._last, self._since = what, now
