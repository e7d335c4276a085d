"""Follows operations of Spark Connect servers in an event loop, which nothing here blocks.

A server gives up an operation that no client follows, and closes a session that no client uses. So
a follower holds a stream of the operation's responses and asks for another one when the server or
a time limit ends it. It reads one response at a time and keeps none.

It only tells that an operation does not run any more. How it has ended, ``connect_operation`` finds
out, unless the follower has read the response of a success.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import grpc
from pyspark.errors import PySparkException
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from airflow_hive_opt.spark.session.connect import server_of
from airflow_hive_opt.spark.session.connect_operation import condition_of
from airflow_hive_opt.statement.text_enum import StrEnum

if TYPE_CHECKING:
    from airflow_hive_opt.documents.remote_operation import OperationId

_ONE_STREAM = 60.0  # seconds; a connection that is silently lost is noticed after them
_AT_LEAST = 1.0  # seconds of a stream, after which the next one begins without a pause
_AT_ONCE = 10.0  # seconds, for a call that the server answers at once
_PAUSE = 5.0  # seconds, on average, before the next try
_PATIENCE = 3600.0  # seconds without an answer
_TIME_TO_STOP = 120.0  # seconds, after the deadline
_SECONDS_BETWEEN_LINES = 300.0  # in the log, while nothing changes


class How(StrEnum):
    """How following an operation ended."""

    SUCCEEDED = "succeeded"
    ENDED = "ended"
    """It does not run any more, or the server does not know it."""
    LATE = "late"
    """The deadline passed, and the operation was stopped."""
    LOST = "lost"
    """It may still run: the server does not answer, or does not stop it."""


class NoAnswer(Exception):
    """The server can't be asked, or does not say whether an operation runs."""


class FollowedOperation:
    """An operation that another process has begun; see :func:`followed`."""

    def __init__(self, channel: Any, metadata: Any, found: OperationId) -> None:
        made: Any = base_pb2_grpc.SparkConnectServiceStub  # which has no types
        self._stub: Any = made(channel)
        self._metadata = metadata
        self._operation = found.operation
        user = base_pb2.UserContext(user_id=found.user)
        self._session: dict[str, Any] = {"session_id": found.session, "user_context": user}
        self._last: str | None = None  # the last response that was read
        self.progress = ""
        """What the server last told of its work."""

    async def ended(self, seconds: float) -> How | None:
        """Follows the operation for at most so many seconds; ``None`` if it still runs.

        Returns also before that if the server ends the stream. Raises :class:`NoAnswer`.
        """
        request = base_pb2.ReattachExecuteRequest(
            **self._session, operation_id=self._operation, last_response_id=self._last
        )
        responses = self._stub.ReattachExecute(request, metadata=self._metadata, timeout=seconds)
        try:
            async for response in responses:
                self._last = response.response_id
                if response.HasField("result_complete"):
                    return How.SUCCEEDED
                if response.HasField("execution_progress"):
                    self.progress = _in_words(response.execution_progress)
        except grpc.RpcError as error:
            return await self._after(error)
        return None

    async def interrupt(self) -> None:
        """Lets the server interrupt the operation; raises :class:`NoAnswer`."""
        request = base_pb2.InterruptRequest(
            **self._session,
            interrupt_type=base_pb2.InterruptRequest.INTERRUPT_TYPE_OPERATION_ID,
            operation_id=self._operation,
        )
        try:
            await self._stub.Interrupt(request, metadata=self._metadata, timeout=_AT_ONCE)
        except grpc.RpcError as error:
            if not condition_of(error):
                raise NoAnswer(_words_of(error)) from None

    async def _after(self, error: Any) -> How | None:
        """What the error that ended a stream says of the operation."""
        condition = condition_of(error)
        if condition == "INVALID_CURSOR.DISCONNECTED":  # another client reads the responses now
            return None
        if condition.startswith("INVALID_CURSOR."):  # the server has dropped those it has sent
            return await self._ended_by_status()
        if condition:
            return How.ENDED
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return None
        raise NoAnswer(_words_of(error))

    async def _ended_by_status(self) -> How | None:
        request = base_pb2.GetStatusRequest(**self._session)
        request.operation_status.operation_ids.append(self._operation)
        states = base_pb2.GetStatusResponse.OperationStatus
        try:
            answer = await self._stub.GetStatus(request, metadata=self._metadata, timeout=_AT_ONCE)
        except grpc.RpcError as error:
            if condition_of(error) or error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return How.ENDED  # before Spark 4.2 nobody can say more
            raise NoAnswer(_words_of(error)) from None
        (found,) = answer.operation_statuses
        running = (states.OPERATION_STATE_RUNNING, states.OPERATION_STATE_TERMINATING)
        return None if found.state in running else How.ENDED


Connects = Callable[[], AbstractAsyncContextManager[FollowedOperation]]
"""Opens a connection to the operation's server; raises :class:`NoAnswer`."""


@asynccontextmanager
async def followed(url: str, found: OperationId) -> AsyncIterator[FollowedOperation]:
    """The operation of the server at ``url``, over a connection of its own, for the block.

    Raises :class:`NoAnswer`, without the URL's parameters.
    """
    try:
        builder = _Builder(url)
    except (PySparkException, ValueError):  # its message contains the URL's parameters
        raise NoAnswer(f"{server_of(url)} is not the address of a Spark Connect server") from None
    async with builder.toChannel() as channel:
        yield FollowedOperation(channel, builder.metadata(), found)


async def follow(connects: Connects, deadline: datetime | None, log: Any) -> How:
    """Waits until the operation has ended; at the ``deadline`` it is interrupted.

    The server may be silent for an hour.
    """
    lines, answered = _Lines(log), time.monotonic()
    given_up: float | None = None  # when it is given up, after the deadline
    while True:
        try:
            async with connects() as operation:
                while True:
                    asked = time.monotonic()
                    how = await operation.ended(_limit(deadline, given_up))
                    answered = time.monotonic()
                    if how is not None:
                        is_late = given_up is not None and how is How.ENDED
                        return How.LATE if is_late else how
                    if given_up is not None and answered >= given_up:
                        return How.LOST
                    if given_up is None and _has_passed(deadline):
                        log.warning("the time of the statement is over, so it is stopped")
                        await operation.interrupt()
                        given_up = time.monotonic() + _TIME_TO_STOP
                    lines.say(operation.progress or "it still runs")
                    if answered - asked < _AT_LEAST:
                        await _pause()
        except NoAnswer as error:
            if time.monotonic() - answered > _PATIENCE:
                log.error("no answer for %d s: %s", _PATIENCE, error)
                return How.LOST
            lines.say(f"it may go on, but its server does not answer: {error}", what="silence")
        await _pause()


async def stop(connects: Connects, seconds: float) -> bool:
    """Interrupts the operation; whether it has ended after at most so many seconds."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            async with connects() as operation:
                await operation.interrupt()
                if await operation.ended(min(left, _AT_ONCE)) is not None:
                    return True
        except NoAnswer:
            await asyncio.sleep(min(left, 1.0))
    return False


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


def _limit(deadline: datetime | None, given_up: float | None) -> float:
    """Seconds for which one stream is read."""
    if given_up is not None:
        return min(_ONE_STREAM, max(1.0, given_up - time.monotonic()))
    if deadline is None:
        return _ONE_STREAM
    left = (deadline - datetime.now(timezone.utc)).total_seconds()
    return min(_ONE_STREAM, max(1.0, left))


def _has_passed(deadline: datetime | None) -> bool:
    return deadline is not None and datetime.now(timezone.utc) >= deadline


async def _pause() -> None:
    # triggers that lose their server together do not all come back together
    await asyncio.sleep(random.uniform(0.5, 1.5) * _PAUSE)  # noqa: S311 - no secret


def _words_of(error: Any) -> str:
    return str(error.details() or error.code())


def _in_words(progress: Any) -> str:
    done = sum(stage.num_completed_tasks for stage in progress.stages)
    tasks = sum(stage.num_tasks for stage in progress.stages)
    return f"{done:,} of {tasks:,} tasks of {len(progress.stages):,} stages have ended"
