"""A server on loopback that speaks Spark Connect's protocol, and answers as a test tells it to.

For answers that Spark's own server gives only after hours, or that a proxy before it gives.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import grpc
from google.protobuf.any_pb2 import Any as Detail
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from tests.services.processes import HOST

Answer = Callable[[Any], Any]
"""Answers a call or ends it with an error; it gets the call's context."""


def refuses(
    message: str,
    domain: str = "org.apache.spark",
    kind: str = "org.apache.spark.SparkException",
) -> Answer:
    """Spark's error with this message and class, or that of a proxy with another ``domain``."""
    detail = Detail()
    detail.Pack(ErrorInfo(reason=kind, domain=domain, metadata={"classes": json.dumps([kind])}))
    code = grpc.StatusCode.INTERNAL.value[0]
    status = rpc_status.to_status(Status(code=code, message=message, details=[detail]))
    return lambda context: context.abort_with_status(status)


def in_turn(*answers: Answer) -> Answer:
    """Answers each call as the next one of ``answers``, and all further calls as the last."""
    left = list(answers)

    def answer(context: Any) -> Any:
        return (left.pop(0) if len(left) > 1 else left[0])(context)

    return answer


def is_lacking(context: Any) -> None:
    """As a proxy without the path: gRPC's clients take its 404 for this code."""
    context.abort(grpc.StatusCode.UNIMPLEMENTED, "Received http2 header with status: 404")


def is_not_there(context: Any) -> None:
    """As a proxy without a server."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "no route")


def hangs(context: Any) -> None:
    """Never answers."""
    gone = threading.Event()
    context.add_callback(gone.set)
    gone.wait(60)


def is_cut(context: Any) -> base_pb2.ExecutePlanResponse:
    """A response, and then the error of a proxy that cuts the stream."""
    context.set_code(grpc.StatusCode.UNAVAILABLE)
    context.set_details("upstream request timeout")
    found = base_pb2.ExecutePlanResponse(response_id=str(uuid4()))
    found.execution_progress.stages.add(num_tasks=10, num_completed_tasks=5)
    return found


def succeeds(context: Any) -> base_pb2.ExecutePlanResponse:
    """The last response of a statement that has succeeded."""
    found = base_pb2.ExecutePlanResponse(response_id="1")
    found.result_complete.SetInParent()
    return found


def runs(context: Any, state: str = "RUNNING") -> Any:
    """The status of an operation that runs, or is in another state."""
    found = base_pb2.GetStatusResponse()
    states = base_pb2.GetStatusResponse.OperationStatus
    found.operation_statuses.add(state=getattr(states, f"OPERATION_STATE_{state}"))
    return found


class Answering(base_pb2_grpc.SparkConnectServiceServicer):
    """Answers the calls by which a statement is followed; ``calls`` are their names."""

    def __init__(self, reattach: Answer, status: Answer = is_lacking) -> None:
        self.reattach = reattach
        self.status = status
        self.interrupt: Answer = lambda _: base_pb2.InterruptResponse()
        self.version: Answer = lambda _: base_pb2.AnalyzePlanResponse()
        self.calls: list[str] = []
        self.url = ""

    def ReattachExecute(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        self.calls.append("reattach")
        if (answer := self.reattach(context)) is not None:
            yield answer

    def GetStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls.append("status")
        return self.status(context)

    def AnalyzePlan(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls.append("version")
        return self.version(context)

    def Interrupt(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls.append("interrupt")
        return self.interrupt(context)

    def ReleaseSession(self, request: Any, context: Any) -> Any:  # noqa: N802
        return base_pb2.ReleaseSessionResponse()


@contextmanager
def answering(reattach: Answer, status: Answer = is_lacking, most: int = 8) -> Iterator[Answering]:
    """Runs the server for the block; it answers ``most`` calls at once."""
    found = Answering(reattach, status)
    server = grpc.server(ThreadPoolExecutor(most))
    base_pb2_grpc.add_SparkConnectServiceServicer_to_server(found, server)
    found.url = f"sc://{HOST}:{server.add_insecure_port(f'{HOST}:0')}"
    server.start()
    try:
        yield found
    finally:
        server.stop(0).wait()
