"""Begins an operation of a Spark Connect server so that another process can find it there.

PySpark's client releases each response that it has read, which the server then forgets. ``kept``
prevents that. It may also leave an operation that takes long to another process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Optional

import grpc

from airflow_hive_opt.documents.remote_operation import OperationId
from airflow_hive_opt.spark.session.left_running import LeftRunning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tells = Callable[[OperationId], Optional[float]]
"""Gets an operation before it begins, and returns after how many seconds this process leaves it.

``None``: it waits until the operation has ended.
"""


@contextmanager
def kept(session: SparkSession, begins: Tells) -> Iterator[None]:
    """Until the session ends, the server keeps what it knows of the first operation of the block.

    ``begins`` gets its ID before the server gets the operation. If it fails, the operation does not
    begin. Raises :class:`LeftRunning` when the seconds are over that ``begins`` has returned.
    """
    client: Any = session.client
    stub = client._stub
    client._stub = _Keeping(stub, begins)
    try:
        yield
    finally:
        client._stub = stub


class _Keeping:
    """The calls to a server, without those by which it forgets the first operation's responses."""

    def __init__(self, stub: Any, begins: Tells) -> None:
        self._stub = stub
        self._begins = begins
        self._first: OperationId | None = None
        self._until: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stub, name)

    def ExecutePlan(self, request: Any, **options: Any) -> Any:  # noqa: N802 - as the server calls it
        if self._first is None:
            user, operation = request.user_context.user_id, request.operation_id
            of_server = request.client_observed_server_side_session_id
            first = OperationId(user, request.session_id, operation, of_server)
            seconds = self._begins(first)
            self._until = None if seconds is None else time.monotonic() + seconds
            self._first = first
        return self._responses(self._stub.ExecutePlan, request, options)

    def ReattachExecute(self, request: Any, **options: Any) -> Any:  # noqa: N802 - as the server calls it
        return self._responses(self._stub.ReattachExecute, request, options)

    def ReleaseExecute(self, request: Any, **options: Any) -> Any:  # noqa: N802 - as the server calls it
        if self._is_first(request):
            return None
        return self._stub.ReleaseExecute(request, **options)

    def _responses(self, method: Any, request: Any, options: dict[str, Any]) -> Any:
        if self._until is None or self._first is None or not self._is_first(request):
            return method(request, **options)
        return _until(self._until, self._first, method, request, options)

    def _is_first(self, request: Any) -> bool:
        return self._first is not None and request.operation_id == self._first.operation


def _until(
    until: float, found: OperationId, method: Any, request: Any, options: dict[str, Any]
) -> Iterator[Any]:
    """The responses up to that time; raises :class:`LeftRunning` then."""
    left = until - time.monotonic()
    if left <= 0:  # while the server did not answer
        raise LeftRunning(found)
    try:
        yield from method(request, **{**options, "timeout": left})
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
            raise
        raise LeftRunning(found) from None
