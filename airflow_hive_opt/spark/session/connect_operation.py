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
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from pyspark.errors.exceptions.connect import convert_exception
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from airflow_hive_opt.documents.remote_operation import OperationId
from airflow_hive_opt.statement.text_enum import StrEnum

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

log = logging.getLogger(__name__)

_TRIES = 5  # while the server does not answer; each pause is twice the one before
_PAUSE = 0.5  # seconds
_ONE_CALL = 60.0  # seconds of waiting, after which the log says that the operation still runs
_AT_ONCE = 10.0  # seconds, for a call that the server answers at once
# The condition of an error of Spark's, as its message begins.
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")
_NO_SUCH_CALL = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND)
_Answer = TypeVar("_Answer")


class Ending(StrEnum):
    """How an operation has ended.

    :attr:`NOT_BEGUN`: the server has its session, and has never got the operation.
    :attr:`UNKNOWN`: the server does not know any more, or never has. It may still run elsewhere.
    """

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NOT_BEGUN = "not begun"
    UNKNOWN = "unknown"


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


def _stub_of(channel: Any) -> Any:
    made: Any = base_pb2_grpc.SparkConnectServiceStub  # which has no types
    return made(channel)


class LeftOperation:
    """An operation that another client has begun; see :func:`left_operation`.

    ``failure`` is the error of one that has failed, once :meth:`ending` has read it.
    """

    failure: PySparkException | None = None

    def __init__(
        self, channel: Any, metadata: Any, found: OperationId, until: float | None
    ) -> None:
        self._stub: Any = _stub_of(channel)
        self._metadata = metadata
        self._until = until
        self._operation = found.operation
        user = base_pb2.UserContext(user_id=found.user)
        self._released: dict[str, Any] = {"session_id": found.session, "user_context": user}
        # A server that was started again makes a session of that ID for whoever asks, and would say
        # that it has never got the operation.
        observed = {"client_observed_server_side_session_id": found.server_session}
        self._session = {**self._released, **(observed if found.server_session else {})}
        self._last: str | None = None  # the last response that was read

    def interrupt(self) -> None:
        """Lets the server interrupt the operation; does not wait until it has ended.

        Does nothing if the server does not know it any more. Raises :class:`NotEnded`.
        """
        request = base_pb2.InterruptRequest(
            **self._session,
            interrupt_type=base_pb2.InterruptRequest.INTERRUPT_TYPE_OPERATION_ID,
            operation_id=self._operation,
        )
        try:
            self._ask_at_once(self._stub.Interrupt, request)
        except _Refused as error:
            if not error.condition.startswith("INVALID_HANDLE."):
                raise NotEnded(str(error)) from None

    def release_session(self) -> None:
        """Ends the operation's session on the server; an error is only logged."""
        request = base_pb2.ReleaseSessionRequest(**self._released)
        try:
            self._ask_at_once(self._stub.ReleaseSession, request)
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
                    return Ending.FAILED

    def _has_read_all(self, limit: float) -> bool:
        """Reads responses until the stream ends; whether the last one was that of a success."""
        request = base_pb2.ReattachExecuteRequest(
            **self._session, operation_id=self._operation, last_response_id=self._last
        )
        for response in self._call(self._stub.ReattachExecute, request, limit):
            self._last = response.response_id
            if response.HasField("result_complete"):
                return True
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
        if not hasattr(self._stub, "GetStatus"):  # before PySpark 4.2
            return Ending.UNKNOWN
        request = base_pb2.GetStatusRequest(**self._session)
        request.operation_status.operation_ids.append(self._operation)
        states = base_pb2.GetStatusResponse.OperationStatus
        try:
            answer = self._ask(
                lambda limit: self._call(self._stub.GetStatus, request, limit), self._until
            )
        except _Refused as error:
            if error.condition.startswith("INVALID_HANDLE.SESSION_"):
                return Ending.UNKNOWN
            if error.code in _NO_SUCH_CALL:  # before Spark 4.2
                return Ending.UNKNOWN
            raise NotEnded(str(error)) from None
        (found,) = answer.operation_statuses
        if found.state == states.OPERATION_STATE_SUCCEEDED:
            return Ending.SUCCEEDED
        if found.state in (states.OPERATION_STATE_FAILED, states.OPERATION_STATE_CANCELLED):
            return Ending.FAILED
        if found.state in (states.OPERATION_STATE_RUNNING, states.OPERATION_STATE_TERMINATING):
            return None
        return Ending.UNKNOWN

    def _call(self, method: Any, request: Any, limit: float) -> Any:
        return method(request, metadata=self._metadata, timeout=limit)

    def _ask_at_once(self, method: Any, request: Any) -> None:
        until = time.monotonic() + _AT_ONCE
        until = until if self._until is None else min(until, self._until)
        self._ask(lambda limit: self._call(method, request, limit), until)

    def _ask(self, ask: Callable[[float], _Answer], until: float | None) -> _Answer:
        """What ``ask`` returns; it gets a limit in seconds, and is called again if that is over.

        Also calls again while the server is not there. Raises :class:`_Refused`, and
        :class:`NotEnded` at the time ``until``, and for errors of which Spark's server knows
        nothing.
        """
        pauses = [_PAUSE * 2**number for number in range(_TRIES)]
        while True:
            left = _ONE_CALL if until is None else until - time.monotonic()
            if left <= 0:
                raise NotEnded("it still runs, or the server does not answer")
            limit = min(_ONE_CALL, left)
            try:
                return ask(limit)
            except grpc.RpcError as error:
                code = error.code()
                if code is grpc.StatusCode.DEADLINE_EXCEEDED:
                    if until is None:
                        log.info("waiting for the statement that an earlier attempt has begun")
                elif code is grpc.StatusCode.UNAVAILABLE and pauses:
                    time.sleep(min(pauses.pop(0), limit))
                elif (condition := condition_of(error)) or code in _NO_SUCH_CALL:
                    raise _Refused(error, condition) from None
                else:
                    raise NotEnded(f"the server does not say: {error.details()}") from None


class _Refused(Exception):
    """An error of Spark's server, with its condition, which is empty for a call that it lacks."""

    def __init__(self, error: Any, condition: str) -> None:
        super().__init__(str(error.details()))
        self.condition = condition
        self.code = error.code()
        self.raised = _raised(error)


def condition_of(error: Any) -> str:
    """The condition of an error that Spark raises, or its class; empty for another error."""
    if (told := _told_by_spark(error)) is None:
        return ""
    found = _CONDITION.search(told[0])
    return found[1] if found else "of another kind"


def _raised(error: Any) -> PySparkException | None:
    """Spark's error as PySpark's client raises it; ``None`` for another error."""
    told = _told_by_spark(error)
    return None if told is None else convert_exception(told[1], told[0], None)


def _told_by_spark(error: Any) -> tuple[str, ErrorInfo] | None:
    """The message of an error that Spark raises, and what it says of itself.

    A proxy's own errors, such as that of a token that has expired, may have details too.
    """
    try:
        status = rpc_status.from_call(error)
    except ValueError:  # its parts contradict each other, as Spark's never do
        return None
    info = ErrorInfo()
    if status is None or not any(_is_of_spark(detail, info) for detail in status.details):
        return None
    return status.message, info


def _is_of_spark(detail: Any, info: ErrorInfo) -> bool:
    return bool(detail.Unpack(info)) and info.domain == "org.apache.spark"
