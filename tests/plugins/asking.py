"""Asks the API server's application and counts its SQL statements."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An answer in JSON, and what it took."""

    found: Any
    milliseconds: float
    statements: int
    bytes: int


class Asking:
    """A user of the API server whose Airflow home is ``home``; a context manager."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._open = ExitStack()
        self._statements = 0

    def __enter__(self) -> Asking:
        from airflow.api_fastapi.app import create_app
        from airflow.settings import engine
        from fastapi.testclient import TestClient
        from sqlalchemy import event

        self._client = self._open.enter_context(TestClient(create_app(apps="core")))
        passwords = self._home / "simple_auth_manager_passwords.json.generated"
        login = {"username": "admin", "password": json.loads(passwords.read_text())["admin"]}
        token = self._client.post("/auth/token", json=login).json()["access_token"]
        self._login = {"Authorization": f"Bearer {token}"}
        event.listen(engine, "before_cursor_execute", self._count)
        self._open.callback(event.remove, engine, "before_cursor_execute", self._count)
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.close()

    def get(self, path: str) -> Answer:
        """The answer below the plugin's path, which must be a success."""
        before, began = self._statements, time.monotonic()
        answer = self._client.get(f"/hive_opt{path}", headers=self._login)
        milliseconds = (time.monotonic() - began) * 1000
        assert answer.status_code == 200, answer.text
        return Answer(answer.json(), milliseconds, self._statements - before, len(answer.content))

    def _count(self, *_: object) -> None:
        self._statements += 1
