"""The trigger that follows a submitted application, outside the workers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from airflow_hive_opt.provider.applications.following import follow, stop
from airflow_hive_opt.provider.applications.kinds import cluster_at
from airflow_hive_opt.provider.triggerer import TriggerEvent
from airflow_hive_opt.triggers.remote_work import SECONDS_TO_STOP, RemoteWorkTrigger


class ApplicationTrigger(RemoteWorkTrigger):
    """Follows an application until it has ended, or until ``deadline`` (ISO 8601) has passed.

    ``cluster`` is the kind of the cluster and ``addresses`` are its servers' URLs, see
    ``airflow_hive_opt.provider.applications.kinds``. The trigger asks every ``poll_interval``
    seconds. Its one event says how the application has ended, and a message.
    """

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
        self.application_id = self.work = application_id
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
        await self.ask_airflow_once()
        ended = await follow(
            cluster_at(self.cluster, self.addresses),
            self.application_id,
            self.poll_interval,
            datetime.fromisoformat(self.deadline) if self.deadline else None,
            self.log,
        )
        yield TriggerEvent({"how": ended.how.value, "message": ended.message})  # type: ignore[no-untyped-call]

    async def stop_work(self) -> bool:
        """See ``RemoteWorkTrigger``."""
        cluster = cluster_at(self.cluster, self.addresses)
        return await stop(cluster, self.application_id, SECONDS_TO_STOP) is not None
