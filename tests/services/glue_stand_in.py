"""A Data Catalog on loopback: moto's server, and before it a proxy with what moto leaves out.

moto keeps tables and partitions, evaluates expressions as Glue does, and answers with Glue's errors
for them. The proxy adds what AWS documents and moto does not have: pages (MaxResults, NextToken),
segments, ExcludeColumnSchema, the limits of 2,048 characters for an expression and of 1,000 keys
for a batch, and UnprocessedKeys. On request it also fails: throttled, cut off, with an expired
token, or without a permission.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.services.processes import HOST

REGION = "eu-central-1"
ACCOUNT = "123456789012"  # moto's own
_TARGET = "X-Amz-Target"
_JSON = "application/x-amz-json-1.1"
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet"

# Name: status, code and message as the services send them.
ERRORS = {
    "throttled": (400, "ThrottlingException", "Rate exceeded"),
    "expired": (
        400,
        "ExpiredTokenException",
        "The security token included in the request is expired",
    ),
    "denied": (
        400,
        "AccessDeniedException",
        "User: arn:aws:sts::123456789012:assumed-role/etl/i-1 is not authorized to perform: "
        "glue:GetPartitions on resource: arn:aws:glue:eu-central-1:123456789012:catalog",
    ),
    "unsigned": (
        400,
        "InvalidSignatureException",
        "The request signature we calculated does not match. The Canonical String for this request "
        "should have been 'POST x-amz-security-token:token-of-tests'",
    ),
    "broken": (500, "InternalServiceException", "try again"),
}
CUT_OFF = ("cut off", "cut off unannounced")


@dataclass
class GlueStandIn:
    """A running stand-in. ``fault`` gets the number of a call from 1, and its action.

    It returns a name of :data:`ERRORS` or of :data:`CUT_OFF`, or ``None`` for a proper answer.
    ``unprocessed`` is how many keys a batch leaves unprocessed.
    """

    endpoint: str
    moto: tuple[str, int]
    calls: Counter[str] = field(default_factory=Counter)
    longest_expression: int = 0
    most_at_once: int = 0
    fault: Callable[[int, str], str | None] = lambda number, action: None
    unprocessed: int = 0
    largest_page: int = 1_000
    _running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def forget(self) -> None:
        """Counts anew and stops to fail."""
        self.calls.clear()
        self.longest_expression = self.most_at_once = self.unprocessed = 0
        self.fault = lambda number, action: None
        self.largest_page = 1_000

    def client(self) -> Any:
        """A client that creates tables, past the proxy."""
        import boto3

        return boto3.client(
            "glue",
            endpoint_url=f"http://{self.moto[0]}:{self.moto[1]}",
            region_name=REGION,
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )

    def create_table(
        self,
        name: str,
        keys: Sequence[tuple[str, str]],
        values: Iterable[Sequence[str]] = (),
        parameters: dict[str, str] | None = None,
        location: str | None = None,
    ) -> None:
        """A table ``database.table`` with partitions, which are put into moto directly."""
        database, _, short = name.partition(".")
        client = self.client()
        if database not in {found["Name"] for found in client.get_databases()["DatabaseList"]}:
            client.create_database(DatabaseInput={"Name": database})
        location = location or f"s3://bucket/{database}/{short}"
        storage = {"Location": location, "Columns": [{"Name": "id", "Type": "bigint"}]}
        client.create_table(
            DatabaseName=database,
            TableInput={
                "Name": short,
                "PartitionKeys": [{"Name": key, "Type": type_} for key, type_ in keys],
                "StorageDescriptor": storage,
                "Parameters": parameters or {},
            },
        )
        self.add_partitions(name, values)

    def add_partitions(self, name: str, values: Iterable[Sequence[str]]) -> None:
        from moto.glue.models import FakePartition, glue_backends

        database, _, short = name.partition(".")
        table = glue_backends[ACCOUNT][REGION].get_table(database, short)
        columns = [{"Name": "id", "Type": "bigint"}]
        for number, row in enumerate(values):
            location = f"s3://bucket/{database}/{short}/{number}"
            input_ = {
                "Values": list(row),
                "StorageDescriptor": {"Location": location, "Columns": columns},
                "Parameters": {"numRows": "7", "totalSize": str(number + 1)},
            }
            table.partitions[str(list(row))] = FakePartition(database, short, input_)
        self._answers.clear()

    def answer(self, action: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the answer for a call that does not fail."""
        if action == "GetPartitions":
            return self._partitions(request)
        if action == "BatchGetPartition":
            return self._batch(request)
        return self._ask_moto(action, request)

    def _partitions(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        expression = request.get("Expression", "")
        self.longest_expression = max(self.longest_expression, len(expression.encode()))
        if len(expression) > 2_048:
            return _invalid("expression", "length less than or equal to 2048")
        size = min(request.get("MaxResults", 1_000), self.largest_page)
        segment = request.get("Segment", {"SegmentNumber": 0, "TotalSegments": 1})
        if not 0 < segment["TotalSegments"] <= 10:
            return _invalid("segment.totalSegments", "value less than or equal to 10")
        bare = {key: request[key] for key in ("DatabaseName", "TableName")}
        key = json.dumps([bare, expression])
        if key not in self._answers:
            asked = {**bare, "Expression": expression} if expression else bare
            status, answer = self._ask_moto("GetPartitions", asked)
            if status != 200:
                return status, answer
            self._answers[key] = answer["Partitions"]
        mine = self._answers[key][segment["SegmentNumber"] :: segment["TotalSegments"]]
        start = int(request.get("NextToken") or 0)
        page = mine[start : start + size]
        if request.get("ExcludeColumnSchema"):
            page = [_without_columns(part) for part in page]
        rest = {"NextToken": str(start + size)} if start + size < len(mine) else {}
        return 200, {"Partitions": page, **rest}

    def _batch(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        wanted = request["PartitionsToGet"]
        if len(wanted) > 1_000:
            return _invalid("partitionsToGet", "length less than or equal to 1000")
        left = wanted[len(wanted) - self.unprocessed :] if self.unprocessed else []
        asked = wanted[: len(wanted) - len(left)]
        status, answer = self._ask_moto("BatchGetPartition", {**request, "PartitionsToGet": asked})
        return status, {**answer, "UnprocessedKeys": left} if status == 200 else answer

    def _ask_moto(self, action: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        connection = HTTPConnection(*self.moto, timeout=120)
        credential = f"Credential=a/20260101/{REGION}/glue/aws4_request"
        headers = {
            "Content-Type": _JSON,
            _TARGET: f"AWSGlue.{action}",
            "Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0",
        }
        try:
            connection.request("POST", "/", json.dumps(request), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    @contextmanager
    def counted(self, action: str) -> Iterator[int]:
        with self._lock:
            self.calls[action] += 1
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
            number = self.calls.total()
        try:
            yield number
        finally:
            with self._lock:
                self._running -= 1


@contextmanager
def glue_stand_in() -> Iterator[GlueStandIn]:
    """Starts moto's server and the proxy, in this process, on free ports; the catalog is empty.

    moto keeps its state in the process, and not in the server.
    """
    from moto.glue.models import glue_backends
    from moto.server import ThreadedMotoServer

    glue_backends.reset()
    moto = ThreadedMotoServer(HOST, 0, verbose=False)
    moto.start()
    try:
        stand_in = GlueStandIn("", moto.get_host_and_port())
        server = ThreadingHTTPServer((HOST, 0), _handler(stand_in))
        server.daemon_threads = True
        stand_in.endpoint = f"http://{HOST}:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield stand_in
        finally:
            server.shutdown()
            server.server_close()
    finally:
        moto.stop()


def _handler(stand_in: GlueStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            action = self.headers[_TARGET].partition(".")[2]
            with stand_in.counted(action) as number:
                fault = stand_in.fault(number, action)
                if fault in ERRORS:
                    status, code, message = ERRORS[fault]
                    self._send(status, {"__type": code, "Message": message})
                else:
                    self._send(*stand_in.answer(action, request), fault)

        def _send(self, status: int, answer: dict[str, Any], fault: str | None = None) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", _JSON)
            if fault == "cut off unannounced":
                self.send_header("Connection", "close")
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if fault else body)
            self.close_connection |= fault is not None

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return Handler


def _without_columns(partition: dict[str, Any]) -> dict[str, Any]:
    storage = {**partition["StorageDescriptor"]}
    storage.pop("Columns", None)
    return {**partition, "StorageDescriptor": storage}


def _invalid(name: str, rule: str) -> tuple[int, dict[str, Any]]:
    message = (
        f"1 validation error detected: Value at '{name}' failed to satisfy constraint: Member must "
        f"have {rule}"
    )
    return 400, {"__type": "ValidationException", "message": message}


def create_databases(client: Any, folder: Path) -> None:
    """The databases ``default`` and ``lake``."""
    client.create_database(DatabaseInput={"Name": "default", "LocationUri": f"file:{folder}"})
    client.create_database(DatabaseInput={"Name": "lake"})


def create_parquet_table(client, name, folder, columns, partition_columns=(), partitions=()):
    """A Parquet table in ``lake``; ``partitions`` are pairs of values and a location."""
    client.create_table(
        DatabaseName="lake",
        TableInput={
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"EXTERNAL": "TRUE"},
            "PartitionKeys": [{"Name": key, "Type": type_} for key, type_ in partition_columns],
            "StorageDescriptor": _storage(columns, f"file:{folder}/{name}"),
        },
    )
    for start in range(0, len(partitions), 100):
        client.batch_create_partition(
            DatabaseName="lake",
            TableName=name,
            PartitionInputList=[
                {"Values": values, "StorageDescriptor": _storage(columns, location)}
                for values, location in partitions[start : start + 100]
            ],
        )


def _storage(columns, location):
    return {
        "Columns": [{"Name": column, "Type": type_} for column, type_ in columns],
        "Location": location,
        "InputFormat": f"{_PARQUET}.MapredParquetInputFormat",
        "OutputFormat": f"{_PARQUET}.MapredParquetOutputFormat",
        "SerdeInfo": {"SerializationLibrary": f"{_PARQUET}.serde.ParquetHiveSerDe"},
    }
