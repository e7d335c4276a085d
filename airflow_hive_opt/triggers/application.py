"""The trigger that follows a submitted application, outside the workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, ClassVar

from airflow_hive_opt.provider.applications.following import SECONDS_TO_STOP, follow, stop
from airflow_hive_opt.provider.applications.kinds import cluster_at
from airflow_hive_opt.provider.triggerer import BaseTrigger, TriggerEvent, state_of_task

_STOPPING: set[asyncio.Future[None]] = set()
"""The stops that go on; an event loop does not keep its tasks alive."""


class ApplicationTrigger(BaseTrigger):
    """Follows an application until it has ended, or until ``deadline`` (ISO 8601) has passed.

    ``cluster`` is the kind of the cluster and ``addresses`` are its servers' URLs, see
    ``airflow_hive_opt.provider.applications.kinds``. The trigger asks every ``poll_interval``
    seconds. Its one event says how the application has ended, and a message.
    """

    _has_asked: ClassVar[bool] = False

    def __init__(
        self,
        cluster: str,
        addresses: Sequence[str],
        application_id: str,
        poll_interval: float,
        deadline: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cluster = cluster
        self.addresses = tuple(addresses)
        self.application_id = application_id
        self.poll_interval = poll_interval
        self.deadline = deadline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See Airflow's ``BaseTrigger``."""
        return (
            "airflow_hive_opt.triggers.application.ApplicationTrigger",
            {
                "cluster": self.cluster,
                "addresses": list(self.addresses),
                "application_id": self.application_id,
                "poll_interval": self.poll_interval,
                "deadline": self.deadline,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event."""
        await self._ask_airflow_once()
        ended = await follow(
            cluster_at(self.cluster, self.addresses),
            self.application_id,
            self.poll_interval,
            datetime.fromisoformat(self.deadline) if self.deadline else None,
            self.log,
        )
        yield TriggerEvent({"how": ended.how.value, "message": ended.message})  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Stops the application of a task that does not wait for it any more.

        Airflow calls this for each trigger that its triggerer no longer has. So it also calls it
        for one that another triggerer has taken over: then the task still waits. Airflow cancels
        this call a second later, and again each second, but a stop may take longer.
        """
        stopping = asyncio.ensure_future(self._stop())
        _STOPPING.add(stopping)
        stopping.add_done_callback(_STOPPING.discard)
        await asyncio.shield(stopping)

    async def _stop(self) -> None:
        if await self._task_waits():
            self.log.info("another triggerer follows %s", self.application_id)
            return
        self.log.info("stopping %s", self.application_id)
        cluster = cluster_at(self.cluster, self.addresses)
        if await stop(cluster, self.application_id, SECONDS_TO_STOP) is None:
            self.log.warning(
                "%s may still run: the cluster does not stop it. The task's next attempt tries "
                "again before it starts",
                self.application_id,
            )

    async def _ask_airflow_once(self) -> None:
        """Lets Airflow make its API in this triggerer, which takes seconds.

        It would do so when it is first asked. That may be in :meth:`on_kill`, where time is short.
        """
        if not ApplicationTrigger._has_asked and self.task_instance is not None:
            ApplicationTrigger._has_asked = True
            await self._task_waits()

    async def _task_waits(self) -> bool:
        """Whether the task is deferred, or nobody can say."""
        try:
            return await state_of_task(self.task_instance) == "deferred"
        except Exception as error:  # noqa: BLE001 - whatever Airflow raises
            self.log.warning(
                "%s goes on: the task's state is unknown: %s", self.application_id, error
            )
            return True
