"""An operation of a Spark Connect server, found again by a process that has not begun it.

The server runs an operation in a thread of its own, also without a client. The last response that
it makes says that this thread is done, so that nothing of the statement can happen after it. If the
operation was begun as in ``kept_operation``, any client can read all responses, up to the last.

From Spark 4.2 on, the server also tells how an operation has ended of which it has given up the
responses, as it does five minutes after the client has gone
(``spark.connect.execute.manager.detachedTimeout``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder

from airflow_hive_opt.documents.remote_operation import OperationId
from airflow_hive_opt.spark.session.operation_protocol import (
    CUT,
    MAY_HAVE_WRITTEN,
    NO_SUCH_CALL,
    Ending,
    OperationRequests,
    condition_of,
    ending_in,
    raised,
    stub_of,
)

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

log = logging.getLogger(__name__)

_TRIES = 5  # while the server does not answer; each pause is twice the one before
_PAUSE = 0.5  # seconds
_ONE_CALL = 60.0  # seconds of waiting, after which the log says that the operation still runs
_AT_ONCE = 10.0  # seconds, for a call that the server answers at once
_Answer = TypeVar("_Answer")


class NotEnded(Exception):
    """An operation still runs, or the server does not say whether it does."""


@contextmanager
def left_operation(
    url: str, found: OperationId, patience: float | None = None
) -> Iterator[LeftOperation]:
    """The operation of the server at ``url``, whichever process has begun it.

    If ``patience`` is given, all calls in the block take at most as many seconds together.
    """
    until = None if patience is None else time.monotonic() + patience
    builder = DefaultChannelBuilder(url)
    with builder.toChannel() as channel:
        yield LeftOperation(channel, builder.metadata(), found, until)


class LeftOperation:
    """An operation that another client has begun; see :func:`left_operation`.

    ``failure`` is the error of one that has failed, or was interrupted, once :meth:`ending` has
    read it.
    """

    failure: PySparkException | None = None

    def __init__(
        self, channel: Any, metadata: Any, found: OperationId, until: float | None
    ) -> None:
        self._stub = stub_of(channel)
        self._metadata = metadata
        self._until = until
        self._requests = OperationRequests(found)
        self._last: str | None = None  # the last response that was read

    def interrupt(self) -> None:
        """Lets the server interrupt the operation; does not wait until it has ended.

        Does nothing if the server does not know it any more. Raises :class:`NotEnded`.
        """
        try:
            self._ask_at_once(self._stub.Interrupt, self._requests.interruption())
        except _Refused as error:
            if not error.condition.startswith("INVALID_HANDLE."):
                raise NotEnded(str(error)) from None

    def release_session(self) -> None:
        """Ends the operation's session on the server; an error is only logged."""
        try:
            self._ask_at_once(self._stub.ReleaseSession, self._requests.release())
        except (_Refused, NotEnded) as error:
            log.debug("the session of an earlier attempt is left to the server: %s", error)

    def ending(self) -> Ending:
        """Waits until the operation has ended; raises :class:`NotEnded`."""
        while True:
            try:
                if self._ask(self._has_read_all, self._until):
                    return Ending.SUCCEEDED
            except _Refused as error:
                condition = error.condition
                if condition == "INVALID_CURSOR.DISCONNECTED":  # another client reads them now
                    time.sleep(_PAUSE)
                elif condition.startswith("INVALID_HANDLE.SESSION_"):
                    return Ending.UNKNOWN
                elif condition.startswith(("INVALID_HANDLE.OPERATION_", "INVALID_CURSOR.")):
                    if (found := self._ending_without_responses(error)) is not None:
                        return found
                    time.sleep(_PAUSE)
                elif not condition or condition.startswith("INVALID_HANDLE."):
                    raise NotEnded(str(error)) from None
                else:  # the operation's own error is its last response
                    self.failure = error.raised
                    may_have_written = condition in MAY_HAVE_WRITTEN
                    return Ending.UNCLEAR if may_have_written else Ending.FAILED

    def _has_read_all(self, limit: float) -> bool:
        """Reads responses until the stream ends; whether the last one was that of a success."""
        before, request = self._last, self._requests.responses(self._last)
        try:
            for response in self._call(self._stub.ReattachExecute, request, limit):
                self._last = response.response_id
                if response.HasField("result_complete"):
                    return True
        except grpc.RpcError as error:
            # a server behind a proxy that cuts its streams has answered too
            if self._last == before or error.code() not in CUT:
                raise
        return False

    def _ending_without_responses(self, refused: _Refused) -> Ending | None:
        """How an operation has ended whose responses the server refuses; ``None`` if it runs.

        One that has only just reached the server may have responses by now.
        """
        found = self._known_ending()
        if found is not Ending.UNKNOWN:
            return found
        if refused.condition.startswith("INVALID_CURSOR."):  # so the server still has it
            raise NotEnded(str(refused))
        # one that the server has given up is OPERATION_ABANDONED
        is_new = refused.condition == "INVALID_HANDLE.OPERATION_NOT_FOUND" and self._last is None
        return Ending.NOT_BEGUN if is_new else Ending.UNKNOWN

    def _known_ending(self) -> Ending | None:
        """How an operation has ended, as the server remembers it; ``None`` if it runs."""
        if (request := self._requests.status()) is None:
            return Ending.UNKNOWN
        try:
            answer = self._ask(
                lambda limit: self._call(self._stub.GetStatus, request, limit), self._until
            )
        except _Refused as error:
            if error.condition.startswith("INVALID_HANDLE.SESSION_"):
                return Ending.UNKNOWN
            if error.code in NO_SUCH_CALL:  # before Spark 4.2
                return Ending.UNKNOWN
            raise NotEnded(str(error)) from None
        return ending_in(answer)

    def _call(self, method: Any, request: Any, limit: float) -> Any:
        return method(request, metadata=self._metadata, timeout=limit)

    def _ask_at_once(self, method: Any, request: Any) -> None:
        until = time.monotonic() + _AT_ONCE
        until = until if self._until is None else min(until, self._until)
        self._ask(lambda limit: self._call(method, request, limit), until)

    def _ask(self, ask: Callable[[float], _Answer], until: float | None) -> _Answer:
        """What ``ask`` returns; it gets a limit in seconds, and is called again if that is over.

        Also calls again while the server is not there. Raises :class:`_Refused`, and
        :class:`NotEnded` at the time ``until``, for errors of which Spark's server knows nothing,
        and if it does not answer several times.
        """
        silent = 0
        while True:
            left = _ONE_CALL if until is None else until - time.monotonic()
            if left <= 0:
                raise NotEnded("it still runs, or the server does not answer")
            limit = min(_ONE_CALL, left)
            try:
                return ask(limit)
            except grpc.RpcError as error:
                condition, code = condition_of(error), error.code()
                if condition or code in NO_SUCH_CALL:
                    raise _Refused(error, condition) from None
                if code is grpc.StatusCode.DEADLINE_EXCEEDED and until is not None:
                    continue
                if until is None and code in CUT and self._answers():
                    log.info("waiting for the statement that an earlier attempt has begun")
                    silent = 0
                elif code not in CUT or silent == _TRIES:
                    raise NotEnded(f"the server does not say: {error.details()}") from None
                time.sleep(min(_PAUSE * 2**silent, limit))
                silent += 1

    def _answers(self) -> bool:
        """Whether the server answers a call: one that hangs takes calls too."""
        try:
            self._call(self._stub.AnalyzePlan, self._requests.version(), _AT_ONCE)
        except grpc.RpcError as error:
            return bool(condition_of(error))
        return True


class _Refused(Exception):
    """An error of Spark's server, with its condition, which is empty for a call that it lacks."""

    def __init__(self, error: Any, condition: str) -> None:
        super().__init__(str(error.details()))
        self.condition = condition
        self.code = error.code()
        self.raised = raised(error)
