"""The trigger that follows a statement on a Spark Connect server, outside the workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from random import random
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.triggerer import TriggerEvent
from airflow_hive_opt.triggers.remote_work import SECONDS_TO_STOP, RemoteWorkTrigger

if TYPE_CHECKING:
    from airflow_hive_opt.spark.session.connect_following import FollowedOperation

_SPREAD = 0.5  # seconds


class ConnectStatementTrigger(RemoteWorkTrigger):
    """Follows an operation until it has ended, or until ``deadline`` (ISO 8601) has passed.

    ``user``, ``session``, ``operation`` and ``server_session`` are its IDs on the ``server``, a
    host and a port. The connection ``conn_id`` has the credentials. The trigger's one event says
    how it has ended. It has Spark's condition of an error, but not its words: Airflow logs an
    event, and only a worker knows the secrets of the task's parameters.
    """

    def __init__(
        self,
        conn_id: str,
        server: str,
        user: str,
        session: str,
        operation: str,
        server_session: str,
        deadline: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.conn_id = conn_id
        self.server = server
        self.user = user
        self.session = session
        self.operation = operation
        self.server_session = server_session
        self.deadline = deadline
        self.work = f"the statement on the Spark Connect server {server}"

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See Airflow's ``BaseTrigger``."""
        return (
            "airflow_hive_opt.triggers.connect_statement.ConnectStatementTrigger",
            {
                "conn_id": self.conn_id,
                "server": self.server,
                "user": self.user,
                "session": self.session,
                "operation": self.operation,
                "server_session": self.server_session,
                "deadline": self.deadline,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event. Whatever prevents the wait here, the task goes on in a worker."""
        try:
            event = await self._followed()
        except Exception as error:  # noqa: BLE001 - such as a package that only workers have
            kind = type(error).__name__
            self.log.error("this triggerer can't follow %s: %s: %s", self.work, kind, error)
            event = {"how": "lost"}
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    async def _followed(self) -> dict[str, Any]:
        follow = (await asyncio.to_thread(_following)).follow
        # Many triggers may have waited for these modules: they must not all go on in one turn.
        await asyncio.sleep(random() * _SPREAD)  # noqa: S311 - no secret
        await self.ask_airflow_once()
        self.log.info("following %s", self.work)
        deadline = datetime.fromisoformat(self.deadline) if self.deadline else None
        ended = await follow(self._connected, deadline, self.log)
        return {
            "how": ended.how.value,
            "condition": ended.condition,
            "is_refused": ended.is_refused,
        }

    async def stop_work(self) -> bool:
        """See ``RemoteWorkTrigger``."""
        stop = (await asyncio.to_thread(_following)).stop
        return bool(await stop(self._connected, SECONDS_TO_STOP))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[FollowedOperation]:
        """Looks the connection up each time: its credentials may have changed."""
        from airflow_hive_opt.documents.remote_operation import OperationId
        from airflow_hive_opt.provider.airflow_compat import connection_of
        from airflow_hive_opt.provider.connections import connect_url
        from airflow_hive_opt.spark.session.connect import server_of
        from airflow_hive_opt.spark.session.connect_following import CanNotFollow, followed

        url = await asyncio.to_thread(connect_url, await connection_of(self.conn_id))
        if server_of(url) != self.server:
            raise CanNotFollow(f"connection {self.conn_id!r} names {server_of(url)} now")
        found = OperationId(self.user, self.session, self.operation, self.server_session)
        async with followed(url, found) as operation:
            yield operation


def _following() -> Any:
    """Loads PySpark and Airflow's Spark provider, which takes seconds: not in a loop."""
    from airflow_hive_opt.provider import connections  # noqa: F401
    from airflow_hive_opt.spark.session import connect_following

    return connect_following
