"""The trigger that follows a statement on a Spark Connect server, outside the workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.triggerer import TriggerEvent
from airflow_hive_opt.triggers.remote_work import SECONDS_TO_STOP, RemoteWorkTrigger

if TYPE_CHECKING:
    from airflow_hive_opt.spark.session.connect_following import FollowedOperation


class ConnectStatementTrigger(RemoteWorkTrigger):
    """Follows an operation until it has ended, or until ``deadline`` (ISO 8601) has passed.

    ``user``, ``session`` and ``operation`` are its IDs on the ``server``, a host and a port. The
    connection ``conn_id`` has the credentials. The trigger's one event says how it has ended.
    """

    def __init__(
        self,
        conn_id: str,
        server: str,
        user: str,
        session: str,
        operation: str,
        deadline: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.conn_id = conn_id
        self.server = server
        self.user = user
        self.session = session
        self.operation = operation
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
                "deadline": self.deadline,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event."""
        follow = (await asyncio.to_thread(_following)).follow
        await self.ask_airflow_once()
        self.log.info("following %s", self.work)
        deadline = datetime.fromisoformat(self.deadline) if self.deadline else None
        how = await follow(self._connected, deadline, self.log)
        yield TriggerEvent({"how": how.value})  # type: ignore[no-untyped-call]

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
        from airflow_hive_opt.spark.session.connect_following import NoAnswer, followed

        try:
            url = await asyncio.to_thread(connect_url, await connection_of(self.conn_id))
        except Exception as error:  # noqa: BLE001 - whatever Airflow raises
            raise NoAnswer(f"connection {self.conn_id!r}: {error}") from None
        if server_of(url) != self.server:
            raise NoAnswer(f"connection {self.conn_id!r} names {server_of(url)} now")
        # whether the server was started again, the task finds out when it resumes
        found = OperationId(self.user, self.session, self.operation, server_session="")
        async with followed(url, found) as operation:
            yield operation


def _following() -> Any:
    """Loads PySpark and Airflow's Spark provider, which takes seconds: not in a loop."""
    from airflow_hive_opt.provider import connections  # noqa: F401
    from airflow_hive_opt.spark.session import connect_following

    return connect_following
