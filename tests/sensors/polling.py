"""Runs a trigger that waits until something lands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_hive_opt.provider.waiting import PollResult
from airflow_hive_opt.triggers.partitions import PollingTrigger


def event_when_landed(
    trigger: PollingTrigger, land: Callable[[], None]
) -> tuple[dict[str, Any], list[PollResult]]:
    """The trigger's event and its polls; ``land`` is called once its absence was seen."""
    trigger.deadline = (datetime.now(timezone.utc) + timedelta(minutes=1)).isoformat()
    trigger.poke_interval = 0.1
    polls: list[PollResult] = []

    class Landing(type(trigger)):
        async def poll(self):
            polls.append(await super().poll())
            if len(polls) == 1:
                land()
            return polls[-1]

    async def first():
        async for event in Landing(**trigger.serialize()[1]).run():
            return event.payload

    return asyncio.run(first()), polls
