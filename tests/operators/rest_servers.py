"""A stand-in for the REST APIs of YARN's resource manager and of a standalone cluster's master."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_FINAL = {"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "KILLED": "KILLED"}
_APPS, _SUBMISSIONS = "/ws/v1/cluster/apps/", "/v1/submissions/"


class RestServers:
    """Both servers at one address.

    ``states`` are what they say of every application, one after the other, and the last one from
    then on: a state's name, ``None`` for an unknown application, or the code of an HTTP error.
    ``asked`` are the requests so far. ``kills_work`` says that a kill ends the application, and
    ``creates`` that the master says that it has started a driver.
    """

    def __init__(self, *states: str | int | None) -> None:
        self.states = list(states)
        self.kills_work = True
        self.creates = True
        self.before_answer = lambda: None
        self.asked: list[tuple[str, str]] = []
        self.created: list[dict[str, Any]] = []
        self.address = ""
        self._lock = threading.Lock()

    @property
    def kills(self) -> int:
        """How often an application was to be stopped."""
        return sum("PUT" in each or "/kill/" in each[1] for each in self.asked)

    def next_state(self) -> str | int | None:
        """What is said of the application now."""
        with self._lock:
            return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def kill(self) -> None:
        """Ends the application."""
        if self.kills_work:
            self.states = ["KILLED"]


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


@contextmanager
def rest_servers(*states: str | int | None) -> Iterator[RestServers]:
    """The servers until the block ends."""
    servers = RestServers(*states)

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            servers.asked.append(("GET", self.path))
            servers.before_answer()
            state = servers.next_state()
            if isinstance(state, int):
                self._say(state, {})
            elif self.path.startswith(_APPS):
                self._say_app(state)
            else:
                self._say_driver(state)

        def do_PUT(self) -> None:
            servers.asked.append(("PUT", self.path))
            assert self._body() == {"state": "KILLED"}
            servers.kill()
            self._say(202, {"state": "RUNNING"})

        def do_POST(self) -> None:
            servers.asked.append(("POST", self.path))
            if self.path == f"{_SUBMISSIONS}create" and not servers.creates:
                self._body()
                self._say(502, {})
            elif self.path == f"{_SUBMISSIONS}create":
                servers.created.append(self._body())
                self._say(200, {"success": True, "submissionId": f"driver-{len(servers.created)}"})
            else:
                servers.kill()
                self._say(200, {"success": True})

        def _say_app(self, state: str | None) -> None:
            if state is None:
                self._say(404, {"RemoteException": {"message": "no such application"}})
                return
            final = _FINAL.get(state, "UNDEFINED")
            app = {"state": state, "finalStatus": final, "progress": 50.0, "runningContainers": 2}
            self._say(
                200, {"app": {**app, "diagnostics": "its words" if state == "FAILED" else ""}}
            )

        def _say_driver(self, state: str | None) -> None:
            if state == "STANDBY":
                self._say(200, {"success": False, "message": "Current state is not alive: STANDBY"})
            elif state is None:
                self._say(200, {"success": False})
            else:
                self._say(200, {"success": True, "driverState": state})

        def _body(self) -> Any:
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")

        def _say(self, code: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with _Server(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.address = f"http://127.0.0.1:{server.server_port}"
        yield servers
        server.shutdown()
