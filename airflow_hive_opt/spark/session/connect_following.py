"""Follows operations of Spark Connect servers in an event loop, which nothing here blocks.

A server gives up an operation that no client follows, and closes a session that no client uses. So
a follower holds a stream of the operation's responses and asks for another one when the server or
a time limit ends it. It reads one response at a time and keeps none.

How an operation has ended that the server does not know any more, ``connect_operation`` finds out,
as far as anybody can.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import grpc
from pyspark.errors import PySparkException
from pyspark.sql.connect.client import DefaultChannelBuilder

from airflow_hive_opt.spark.session.connect import server_of
from airflow_hive_opt.spark.session.operation_protocol import (
    CUT,
    NO_SUCH_CALL,
    UNCLEAR,
    Ending,
    OperationRequests,
    condition_of,
    ending_in,
    raised,
    stub_of,
)
from airflow_hive_opt.spark.session.statement_errors import is_refusal
from airflow_hive_opt.statement.text_enum import StrEnum

if TYPE_CHECKING:
    from airflow_hive_opt.documents.remote_operation import OperationId

_ONE_STREAM = 60.0  # seconds; a connection that is silently lost is noticed after them
_AT_LEAST = 1.0  # seconds of a stream, after which the next one begins without a pause
_AT_ONCE = 10.0  # seconds, for a call that the server answers at once
_PAUSE = 5.0  # seconds, on average, before the next try; each one is twice the one before
_LONGEST_PAUSE = 60.0  # seconds
_PATIENCE = 3600.0  # seconds without an answer
_TIME_TO_STOP = 120.0  # seconds, after the deadline
_SECONDS_BETWEEN_LINES = 300.0  # in the log, while nothing changes


class How(StrEnum):
    """How following an operation ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ENDED = "ended"
    """It does not run any more, or the server does not know it."""
    LATE = "late"
    """The deadline passed, and the server was told to stop it. It may still run."""
    LOST = "lost"
    """It may still run: the server does not answer."""


@dataclass(frozen=True)
class Ended:
    """The end of an operation, or of what is known of it.

    Of one that has failed, ``condition`` is Spark's; a retry of one that ``is_refused`` fails too.
    """

    how: How
    condition: str = ""
    is_refused: bool = False


class NoAnswer(Exception):
    """The server does not say whether an operation runs."""


class CanNotFollow(Exception):
    """The server can't be asked from here, however often somebody tries."""


class FollowedOperation:
    """An operation that another process has begun; see :func:`followed`."""

    def __init__(self, channel: Any, metadata: Any, found: OperationId) -> None:
        self._stub = stub_of(channel)
        self._metadata = metadata
        self._requests = OperationRequests(found)
        self._last: str | None = None  # the last response that was read
        self.progress = ""
        """What the server last told of its work."""

    async def ended(self, seconds: float) -> Ended | None:
        """Follows the operation for at most so many seconds; ``None`` if it still runs.

        Returns also before that if the server ends the stream. Raises :class:`NoAnswer`.
        """
        request = self._requests.responses(self._last)
        responses = self._stub.ReattachExecute(request, metadata=self._metadata, timeout=seconds)
        before = self._last
        try:
            async for response in responses:
                self._last = response.response_id
                if response.HasField("result_complete"):
                    return Ended(How.SUCCEEDED)
                if response.HasField("execution_progress"):
                    self.progress = _in_words(response.execution_progress)
        except grpc.RpcError as error:
            return await self._after(error, has_answered=self._last != before)
        return None

    async def interrupt(self) -> None:
        """Lets the server interrupt the operation; raises :class:`NoAnswer`."""
        await self._told(self._stub.Interrupt, self._requests.interruption())

    async def _after(self, error: Any, has_answered: bool) -> Ended | None:
        """What the error that ended a stream says of the operation."""
        condition = condition_of(error)
        if condition == "INVALID_CURSOR.DISCONNECTED":  # another client reads the responses now
            return None
        if condition.startswith("INVALID_CURSOR."):  # the server has dropped those it has sent
            return await self._ended_by_status()
        if condition.startswith("INVALID_HANDLE."):
            return Ended(How.ENDED)
        if condition:  # the operation's own error is its last response
            return Ended(How.FAILED, condition, is_refusal(raised(error)))
        if has_answered:  # before something has cut the stream
            return None
        if error.code() not in CUT:
            raise NoAnswer(_words_of(error))
        await self._told(self._stub.AnalyzePlan, self._requests.version())
        return None

    async def _told(self, method: Any, request: Any) -> None:
        """Raises :class:`NoAnswer` if Spark does not answer; one that hangs takes calls too."""
        try:
            await method(request, metadata=self._metadata, timeout=_AT_ONCE)
        except grpc.RpcError as error:
            if not condition_of(error):
                raise NoAnswer(_words_of(error)) from None

    async def _ended_by_status(self) -> Ended | None:
        if (request := self._requests.status()) is None:
            return Ended(How.ENDED)
        try:
            answer = await self._stub.GetStatus(request, metadata=self._metadata, timeout=_AT_ONCE)
        except grpc.RpcError as error:
            if condition_of(error) or error.code() in NO_SUCH_CALL:
                return Ended(How.ENDED)  # before Spark 4.2 nobody can say more
            raise NoAnswer(_words_of(error)) from None
        ending = ending_in(answer)
        if ending is Ending.UNCLEAR:
            return Ended(How.FAILED, UNCLEAR)
        if ending is Ending.SUCCEEDED:
            return Ended(How.SUCCEEDED)
        return None if ending is None else Ended(How.ENDED)


Connects = Callable[[], AbstractAsyncContextManager[FollowedOperation]]
"""Opens a connection to the operation's server; raises :class:`CanNotFollow`."""


@asynccontextmanager
async def followed(url: str, found: OperationId) -> AsyncIterator[FollowedOperation]:
    """The operation of the server at ``url``, over a connection of its own, for the block.

    Raises :class:`CanNotFollow`, without the URL's parameters.
    """
    try:
        builder = _Builder(url)
    except (PySparkException, ValueError):  # its message contains the URL's parameters
        what = f"{server_of(url)} is not the address of a Spark Connect server"
        raise CanNotFollow(what) from None
    async with builder.toChannel() as channel:
        yield FollowedOperation(channel, builder.metadata(), found)


async def follow(connects: Connects, deadline: datetime | None, log: Any) -> Ended:
    """Waits until the operation has ended; at the ``deadline`` it is interrupted.

    The server may be silent for an hour. Raises what ``connects`` raises.
    """
    wait = _Wait(deadline, log)
    while True:
        try:
            async with connects() as operation:
                while (ended := await wait.turn(operation)) is None:
                    pass
                return ended
        except NoAnswer as error:
            if (given_up := wait.given_up(error)) is not None:
                return given_up
        await wait.pause()


async def stop(connects: Connects, seconds: float) -> bool:
    """Interrupts the operation; whether it has ended after at most so many seconds."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        with suppress(NoAnswer):
            async with connects() as operation:
                await operation.interrupt()
                if await operation.ended(min(left, _AT_ONCE)) is not None:
                    return True
        await asyncio.sleep(min(left, 1.0))
    return False


class _Wait:
    """What is known while an operation is followed."""

    def __init__(self, deadline: datetime | None, log: Any) -> None:
        self._deadline, self._log, self._lines = deadline, log, _Lines(log)
        self._answered = time.monotonic()
        self._stop_by: float | None = None  # after the deadline
        self._is_interrupted = False
        self._pause = _PAUSE

    async def turn(self, operation: FollowedOperation) -> Ended | None:
        """Reads one stream of responses; raises :class:`NoAnswer`."""
        asked = time.monotonic()
        if self._is_late() and not self._is_interrupted:
            await operation.interrupt()
            self._is_interrupted = True
        ended = await operation.ended(self._limit())
        self._answered, self._pause = time.monotonic(), _PAUSE
        if ended is not None and (ended.how is How.SUCCEEDED or self._stop_by is None):
            return ended
        if ended is not None:
            return replace(ended, how=How.LATE)
        if self._stop_by is not None and self._answered >= self._stop_by:
            return Ended(How.LATE)
        self._lines.say(operation.progress or "it still runs")
        if self._answered - asked < _AT_LEAST:
            await self.pause()
        return None

    def given_up(self, error: NoAnswer) -> Ended | None:
        """The end of the wait for a server that has been silent for too long."""
        now = time.monotonic()
        if self._is_late() and self._stop_by is not None and now >= self._stop_by:
            self._log.error("the statement can't be stopped: %s", error)
            return Ended(How.LATE)
        if now - self._answered > _PATIENCE:
            self._log.error("no answer for %d s: %s", _PATIENCE, error)
            return Ended(How.LOST)
        self._lines.say(f"it may go on, but its server does not answer: {error}", what="silence")
        return None

    async def pause(self) -> None:
        """Triggers that lose their server together do not all come back together."""
        await asyncio.sleep(random.uniform(0.5, 1.5) * self._pause)  # noqa: S311 - no secret
        if self._stop_by is None:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _is_late(self) -> bool:
        if self._stop_by is None and _seconds_until(self._deadline) <= 0:
            self._log.warning("the time of the statement is over, so it is stopped")
            self._stop_by, self._pause = time.monotonic() + _TIME_TO_STOP, _PAUSE
        return self._stop_by is not None

    def _limit(self) -> float:
        """Seconds for which one stream is read."""
        left = _seconds_until(self._deadline)
        if self._stop_by is not None:
            left = self._stop_by - time.monotonic()
        return min(_ONE_STREAM, max(1.0, left))


class _Builder(DefaultChannelBuilder):
    """PySpark's, for channels of an event loop; each has its own connection.

    The streams of many operations in one connection could be more than a proxy allows.
    """

    def _insecure_channel(self, target: Any, **given: Any) -> Any:
        return grpc.aio.insecure_channel(target, options=self._options(), **given)

    def _secure_channel(self, target: Any, credentials: Any, **given: Any) -> Any:
        return grpc.aio.secure_channel(target, credentials, options=self._options(), **given)

    def _options(self) -> list[tuple[str, Any]]:
        return [*self._channel_options, ("grpc.use_local_subchannel_pool", 1)]


class _Lines:
    """Log lines: one for each change, and one every few minutes without a change."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._last, self._since = "", 0.0

    def say(self, words: str, what: str = "progress") -> None:
        now = time.monotonic()
        if what != self._last or now - self._since >= _SECONDS_BETWEEN_LINES:
            self._log.info("the statement on the Spark Connect server: %s", words)
            self._last, self._since = what, now


def _seconds_until(deadline: datetime | None) -> float:
    if deadline is None:
        return math.inf
    return (deadline - datetime.now(timezone.utc)).total_seconds()


def _words_of(error: Any) -> str:
    return str(error.details() or error.code())


def _in_words(progress: Any) -> str:
    done = sum(stage.num_completed_tasks for stage in progress.stages)
    tasks = sum(stage.num_tasks for stage in progress.stages)
    return f"{done:,} of {tasks:,} tasks of {len(progress.stages):,} stages have ended"
