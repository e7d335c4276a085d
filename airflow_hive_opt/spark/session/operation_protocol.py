"""The requests about one operation of a Spark Connect server, and what its answers mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from pyspark.errors.exceptions.connect import convert_exception
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from airflow_hive_opt.spark.session.statement_errors import AFTER_COMMIT, is_unclear
from airflow_hive_opt.statement.text_enum import StrEnum

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

    from airflow_hive_opt.documents.remote_operation import OperationId

CUT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
"""The server is not there, or it hangs, or something before it cuts its streams."""

NO_SUCH_CALL = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND)

_CANCELED = "OPERATION_CANCELED"  # of an operation that was interrupted

ORPHANED = "OPERATION_ORPHANED"
"""The condition of an operation that the server has dropped.

Its thread had ended without a last response, or had not begun yet when a client asked for it. The
server says so once, and then knows nothing of the operation.
"""

UNCLEAR = "UNCLEAR_ERROR"
"""Stands for the condition of an operation with an error that may have come after its commit.

This is an error that is not one of Spark's classes: the server stops, or the metastore, the catalog
or the storage does not answer. It also stands for an interrupt or an error that the server does
not tell any more.
"""

MAY_HAVE_WRITTEN = (_CANCELED, ORPHANED, UNCLEAR, *AFTER_COMMIT)
"""The conditions of an operation that runs no more, but may have written."""

# The words of Spark 4.0 and 4.1, whose error has no condition.
_DROPPED = "Operation was orphaned because of an internal error"
# The condition of an error of Spark's, as its message begins.
_CONDITION = re.compile(r"\[(_?[A-Z][A-Z0-9_.]*)\]")


class Ending(StrEnum):
    """How an operation has ended.

    :attr:`UNCLEAR`: it runs no more, but may have written: its error is unclear, or it was
    interrupted, which may have been at its commit or after it.
    :attr:`NOT_BEGUN`: the server has its session, and has never got the operation.
    :attr:`UNKNOWN`: the server does not know any more, or never has. It may still run elsewhere.
    """

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNCLEAR = "unclear"
    NOT_BEGUN = "not begun"
    UNKNOWN = "unknown"


class OperationRequests:
    """The requests about the operation ``found``, in PySpark's classes, which have no types."""

    def __init__(self, found: OperationId) -> None:
        self._operation = found.operation
        user = base_pb2.UserContext(user_id=found.user)
        self._released: dict[str, Any] = {"session_id": found.session, "user_context": user}
        # A server that was started again makes a session of that ID for whoever asks, and would say
        # that it has never got the operation.
        observed = {"client_observed_server_side_session_id": found.server_session}
        self._session = {**self._released, **(observed if found.server_session else {})}

    def responses(self, after: str | None) -> Any:
        """Asks for all responses after the one of this ID, or for all."""
        return base_pb2.ReattachExecuteRequest(
            **self._session, operation_id=self._operation, last_response_id=after
        )

    def interruption(self) -> Any:
        """Asks to interrupt the operation."""
        return base_pb2.InterruptRequest(
            **self._session,
            interrupt_type=base_pb2.InterruptRequest.INTERRUPT_TYPE_OPERATION_ID,
            operation_id=self._operation,
        )

    def status(self) -> Any:
        """Asks how the operation is; ``None`` before PySpark 4.2."""
        if not hasattr(base_pb2, "GetStatusRequest"):
            return None
        request = base_pb2.GetStatusRequest(**self._session)
        request.operation_status.operation_ids.append(self._operation)
        return request

    def version(self) -> Any:
        """Asks for Spark's version, which each server answers at once."""
        request = base_pb2.AnalyzePlanRequest(**self._session)
        request.spark_version.SetInParent()
        return request

    def release(self) -> Any:
        """Asks to end the operation's session."""
        return base_pb2.ReleaseSessionRequest(**self._released)


def stub_of(channel: Any) -> Any:
    """The calls to the server of the channel."""
    made: Any = base_pb2_grpc.SparkConnectServiceStub  # which has no types
    return made(channel)


def ending_in(status: Any) -> Ending | None:
    """How the operation of the answer to :meth:`OperationRequests.status` is; ``None``: it runs.

    The answer does not have the error of one that has failed, which may have come after its commit.
    """
    states = base_pb2.GetStatusResponse.OperationStatus
    found = [each.state for each in status.operation_statuses]
    if states.OPERATION_STATE_SUCCEEDED in found:
        return Ending.SUCCEEDED
    if {states.OPERATION_STATE_FAILED, states.OPERATION_STATE_CANCELLED} & set(found):
        return Ending.UNCLEAR
    if {states.OPERATION_STATE_RUNNING, states.OPERATION_STATE_TERMINATING} & set(found):
        return None
    return Ending.UNKNOWN


def condition_of(error: Any) -> str:
    """The condition of an error that a server tells; empty for an error that is not its own."""
    if (told := _told_by_spark(error)) is None:
        return ""
    message, info = told
    found = condition_in(message)
    is_clear = found == ORPHANED or not is_unclear(info.reason, message)
    return found if is_clear else UNCLEAR


def condition_in(message: str) -> str:
    """The condition of the error with this message.

    >>> condition_in("[DIVIDE_BY_ZERO] Division by zero."), condition_in("Disk full")
    ('DIVIDE_BY_ZERO', 'of another kind')
    >>> condition_in("[SPARK_CONNECT_ILLEGAL_STATE.EXECUTION_STATE_OPERATION_ORPHANED] It has")
    'OPERATION_ORPHANED'
    """
    if _DROPPED in message:
        return ORPHANED
    found = _CONDITION.search(message)
    if found is None:
        return "of another kind"
    return ORPHANED if found[1].endswith(f"_{ORPHANED}") else found[1]


def raised(error: Any) -> PySparkException | None:
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
