"""A web server before another one: it demands an OAuth2 token, and fails as it is told.

It stands before Iceberg's REST catalog, which gives a token to everybody and asks nobody for it.
"""

from __future__ import annotations

import http.client
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.services.processes import HOST

FAULTS = ("hang", "drop", "error", "slow", "unauthorized")
_TOKENS = "/v1/oauth/tokens"
_OF_THE_CONNECTION = ("connection", "content-length", "host", "transfer-encoding", "date", "server")


@dataclass
class Guard:
    """A running server. ``fault`` is how it fails now, one of :data:`FAULTS`.

    It fails for paths that contain ``at``, after ``spared`` more requests for them. ``requests``
    has the paths that it was asked for.
    """

    uri: str = ""
    client_id: str = "loader"
    client_secret: str = field(default_factory=lambda: secrets.token_hex(16))
    fault: str | None = None
    at: str = ""
    spared: int = 0
    requests: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def credential(self) -> str:
        """The credential as clients write it."""
        return f"{self.client_id}:{self.client_secret}"

    @contextmanager
    def failing(self, fault: str, at: str = "", spared: int = 0) -> Iterator[None]:
        """Fails within the block; afterwards the requests that hang are dropped."""
        assert fault in FAULTS, fault
        self.released.clear()
        self.fault, self.at, self.spared = fault, at, spared
        try:
            yield
        finally:
            self.fault = None
            self.released.set()

    def fault_of(self, path: str) -> str | None:
        """How the request for ``path`` fails."""
        self.requests.append(path)
        if self.fault is None or self.at not in path:
            return None
        self.spared -= 1
        return self.fault if self.spared < 0 else None


@contextmanager
def guarded(uri: str) -> Iterator[Guard]:
    """Runs a server before the one at ``uri`` for the block."""
    guard = Guard()
    handler = type("Handler", (_Handler,), {"guard": guard, "behind": urlsplit(uri).netloc})
    server = ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    guard.uri = f"http://{HOST}:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield guard
    finally:
        guard.released.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    guard: Guard
    behind: str
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.guard.fault_of(self.path)
        if fault in ("hang", "drop"):
            if fault == "hang":
                self.guard.released.wait()
            self.close_connection = True
            return
        if fault == "error":
            self._answer(500, _error(500, "InternalServerError", "the database is down"))
        elif self.path == _TOKENS:
            self._token(body)
        elif fault == "unauthorized" or not self._is_authorized():
            self._answer(401, _error(401, "NotAuthorizedException", "the token is not valid"))
        else:
            self._forward(body, 0.2 if fault == "slow" else 0)

    do_GET = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - the names of its base

    def _token(self, body: bytes) -> None:
        asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        given = asked.get("client_id"), asked.get("client_secret")
        if given != (self.guard.client_id, self.guard.client_secret):
            text = {"error": "invalid_client", "error_description": f"no client {given[0]}"}
            self._answer(401, json.dumps(text).encode())
            return
        token = secrets.token_hex(16)
        self.guard.tokens.add(token)
        answer = {"access_token": token, "token_type": "bearer", "expires_in": 3600}
        issued = {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}
        self._answer(200, json.dumps({**answer, **issued}).encode())

    def _is_authorized(self) -> bool:
        given = self.headers.get("Authorization", "")
        return given.removeprefix("Bearer ") in self.guard.tokens

    def _forward(self, body: bytes, pause: float) -> None:
        connection = http.client.HTTPConnection(self.behind, timeout=60)
        own = {k: v for k, v in self.headers.items() if k.lower() not in _OF_THE_CONNECTION}
        connection.request(self.command, self.path, body or None, own)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        headers = [
            pair for pair in answer.getheaders() if pair[0].lower() not in _OF_THE_CONNECTION
        ]
        self._answer(answer.status, text, headers, pause)

    def _answer(self, status: int, text: bytes, headers: Any = (), pause: float = 0) -> None:
        """Sends the answer; with ``pause`` a byte at a time, that many seconds apart."""
        self.send_response(status)
        for name, value in headers or [("Content-Type", "application/json")]:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if not pause:
            self.wfile.write(text)
        for byte in text if pause else b"":
            self.wfile.write(bytes([byte]))
            if self.guard.released.wait(pause):
                self.close_connection = True
                return

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests read ``Guard.requests``."""


def _error(code: int, kind: str, message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "code": code}}).encode()
