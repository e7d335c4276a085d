"""An S3 server on loopback: moto's, which counts requests, delays them, and fails when it is told.

moto keeps its objects in the process, and not in the server.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from airflow_hive_opt.statement.text_enum import StrEnum
from tests.services.jars import jars
from tests.services.processes import HOST

REGION = "us-east-1"
CREDENTIALS = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
JARS = "s3a-4.3"
"""The set of jars with S3A for the Hadoop of PySpark 4.3."""
_ACCOUNT = "123456789012"  # moto's own
_LISTED = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)
_NAME = re.compile(rb"<Key>(.*?)</Key>")
_ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message></Error>"


class Kind(StrEnum):
    """What a request asks for."""

    LIST = "LIST"
    GET = "GET"
    HEAD = "HEAD"
    PUT = "PUT"
    COPY = "COPY"
    DELETE = "DELETE"
    """One object, or many."""
    MULTIPART = "MULTIPART"
    """The beginning, a part, the end or the list of an upload in parts."""


class Fault(StrEnum):
    """How a request fails."""

    SLOW_DOWN = "slow down"
    """503, and the server has done nothing."""
    CUT = "cut"
    """The connection ends, and the server has done nothing."""
    LOST = "lost"
    """The server does it, and the connection ends without an answer."""
    GONE = "gone"
    """There is no such key."""


@dataclass(frozen=True)
class Request:
    """A request; ``number`` counts from 1. ``key`` is the prefix if it is a listing."""

    number: int
    kind: Kind
    bucket: str
    key: str


Answer = tuple[str, list[tuple[str, str]], bytes]
"""The status, the headers and the body of an answer."""


def no_fault(_: Request) -> Fault | None:
    """Nothing fails."""
    return None


@dataclass
class S3Server:
    """A running server; ``log`` are the requests since :meth:`forget`.

    ``fault`` says how a request fails; it may also wait. ``is_late`` are the keys that no listing
    has yet. ``milliseconds`` are added to each request.
    """

    endpoint: str = ""
    log: list[Request] = field(default_factory=list)
    fault: Callable[[Request], Fault | None] = no_fault
    is_late: Callable[[str], bool] | None = None
    milliseconds: float = 0.0
    _listings: dict[str, Answer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        """Counts anew, and no longer fails or waits."""
        with self._lock:
            self.log = []
        self.fault, self.is_late, self.milliseconds = no_fault, None, 0.0

    def requests(self, prefix: str = "") -> Counter[Kind]:
        """How many requests of each kind there were for keys that begin with ``prefix``."""
        return Counter(found.kind for found in self.log if found.key.startswith(prefix))

    def make_bucket(self, name: str) -> None:
        """A bucket that is empty."""
        self._backend().create_bucket(name, REGION)

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Puts an object past the server."""
        self._backend().put_object(bucket, key, data)
        self._written()

    def objects(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """The objects by their keys, past the server."""
        found = self._backend().buckets[bucket].keys.items()
        return {name: key.value for name, key in found if name.startswith(prefix)}

    def delete(self, bucket: str, keys: Iterable[str]) -> None:
        """Deletes objects past the server."""
        for key in list(keys):
            self._backend().delete_object(bucket, key)
        self._written()

    def uploads(self, bucket: str) -> list[str]:
        """The keys of the uploads in parts that nobody has ended."""
        return [upload.key_name for upload in self._backend().buckets[bucket].multiparts.values()]

    def s3a(self) -> dict[str, str]:
        """Hadoop's settings for this server."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b",
        }

    def answer(self, moto: Any, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        """One request as WSGI has it; ``moto`` answers those that do not fail."""
        kind, bucket, key = _asked(environ)
        with self._lock:
            request = Request(len(self.log) + 1, kind, bucket, key)
            self.log.append(request)
        if self.milliseconds:
            time.sleep(self.milliseconds / 1000)
        fault = self.fault(request)
        if fault in (Fault.SLOW_DOWN, Fault.GONE):
            _read_all(environ)
            return _refused(fault, kind, start)
        if fault is Fault.CUT:
            _hang_up(environ)
        status, headers, body = self._answer(moto, environ, kind)
        if fault is Fault.LOST:
            _hang_up(environ)
        start(status, headers)
        return [body]

    def _answer(self, moto: Any, environ: dict[str, Any], kind: Kind) -> Answer:
        """moto's answer. It looks at every key for a listing, so those are kept until a write."""
        if kind is not Kind.LIST:
            reads = kind in (Kind.GET, Kind.HEAD)
            if not reads:
                self._written()
            try:
                return _call(moto, environ)
            finally:
                if not reads:
                    self._written()
        asked = f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        kept = self._listings
        if asked not in kept:  # what was listed during a write goes to a dictionary that is gone
            kept[asked] = _call(moto, environ)
        return kept[asked] if self.is_late is None else _without(kept[asked], self.is_late)

    def _written(self) -> None:
        self._listings = {}

    def _backend(self) -> Any:
        from moto.s3.models import s3_backends

        return s3_backends[_ACCOUNT]["aws"]


def spark_conf(server: S3Server) -> dict[str, str]:
    """Spark's settings for S3A on the server."""
    return {
        "spark.driver.extraClassPath": ":".join(map(str, jars(JARS))),
        **{f"spark.hadoop.{name}": value for name, value in server.s3a().items()},
    }


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Starts moto's server in this process, on a free port."""
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    class Handler(MotoRequestHandler):
        """Keeps connections open, as S3 does, and says nothing."""

        protocol_version = "HTTP/1.1"

        def handle_expect_100(self) -> bool:
            return True  # werkzeug itself answers

        def log(self, *_: object) -> None:
            """Says nothing."""

    moto, running = DomainDispatcherApplication(create_backend_app), S3Server()
    server = make_server(
        HOST,
        0,
        lambda environ, start: running.answer(moto, environ, start),
        threaded=True,
        request_handler=Handler,
    )
    server.daemon_threads = True
    running.endpoint = f"http://{HOST}:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()


def _asked(environ: Mapping[str, Any]) -> tuple[Kind, str, str]:
    """The kind of a request, its bucket, and its key or prefix."""
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    bucket, _, key = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")
    method = environ["REQUEST_METHOD"]
    if query.keys() & {"uploads", "uploadId", "partNumber"}:
        return Kind.MULTIPART, bucket, key
    if method == "POST":
        return Kind.DELETE, bucket, key
    if method == "GET" and not key:
        return Kind.LIST, bucket, query.get("prefix", [""])[0]
    if "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return Kind.COPY, bucket, key
    return Kind(method), bucket, key


def _without(listing: Answer, is_late: Callable[[str], bool]) -> Answer:
    """A listing without the keys that it does not have yet."""
    status, headers, body = listing

    def kept(found: re.Match[bytes]) -> bytes:
        name = _NAME.search(found[0])
        assert name is not None
        return b"" if is_late(unquote(name[1].decode())) else found[0]

    body = _LISTED.sub(kept, body)
    headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return status, [*headers, ("Content-Length", str(len(body)))], body


def _call(app: Any, environ: dict[str, Any]) -> Answer:
    """The answer of a WSGI application, whole."""
    said: list[Any] = []

    def start(status: str, headers: list[tuple[str, str]], *_: object) -> None:
        said[:] = status, headers

    answer = app(environ, start)
    try:
        body = b"".join(answer)
    finally:
        if hasattr(answer, "close"):
            answer.close()
    return said[0], said[1], body


def _refused(fault: Fault, kind: Kind, start: Any) -> list[bytes]:
    status, code, why = {
        Fault.SLOW_DOWN: ("503 Slow Down", "SlowDown", "Please reduce your request rate."),
        Fault.GONE: ("404 Not Found", "NoSuchKey", "The specified key does not exist."),
    }[fault]
    body = b"" if kind is Kind.HEAD else _ERROR.format(code, why).encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _read_all(environ: dict[str, Any]) -> None:
    """Reads what the client sends, because its next request comes on the same connection."""
    from werkzeug.wsgi import get_input_stream

    get_input_stream(environ).read()


def _hang_up(environ: Mapping[str, Any]) -> None:
    with suppress(OSError):  # the client may be gone
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError("a fault")
