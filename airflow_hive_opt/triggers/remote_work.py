"""The base of the triggers that follow work on a cluster or a server: when they stop it."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from contextlib import suppress
from typing import ClassVar

from airflow_hive_opt.provider.triggerer import BaseTrigger, state_of_task

SECONDS_TO_STOP = 25.0
"""For a user's stop."""

_SECONDS_TO_ASK, _PAUSE = 20.0, 1.0  # while Airflow does not tell the task's state

_STOPPING: set[asyncio.Future[None]] = set()
"""The stops that go on; an event loop does not keep its tasks alive."""


class RemoteWorkTrigger(BaseTrigger):
    """Stops the work of a task that does not wait for it any more.

    ``work`` names it in the log.
    """

    work: str
    _has_asked: ClassVar[bool] = False

    @abstractmethod
    async def stop_work(self) -> bool:
        """Stops the work; returns whether it has ended, after :data:`SECONDS_TO_STOP` at most."""

    async def on_kill(self) -> None:
        """Stops the work, if the task does not wait for it any more.

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
            self.log.info("another triggerer follows %s", self.work)
            return
        self.log.info("stopping %s", self.work)
        why: object = "nothing shows that it has been stopped"
        try:
            if await self.stop_work():
                return
        except Exception as error:  # noqa: BLE001 - such as a connection that is missing here
            why = error
        self.log.warning(
            "%s may still run: %s. The task's next attempt tries again before it starts",
            self.work,
            why,
        )

    async def ask_airflow_once(self) -> None:
        """Lets Airflow make its API in this triggerer, which takes seconds.

        It would do so when it is first asked. That may be in :meth:`on_kill`, where time is short.
        """
        if not RemoteWorkTrigger._has_asked and self.task_instance is not None:
            RemoteWorkTrigger._has_asked = True
            with suppress(Exception):
                await state_of_task(self.task_instance)

    async def _task_waits(self) -> bool:
        """Whether the task is deferred, or nobody can say."""
        until = time.monotonic() + _SECONDS_TO_ASK
        while True:
            try:
                return await state_of_task(self.task_instance) == "deferred"
            except Exception as error:  # noqa: BLE001 - whatever Airflow raises
                if time.monotonic() >= until:
                    self.log.warning(
                        "%s goes on: the task's state is unknown: %s", self.work, error
                    )
                    return True
            await asyncio.sleep(_PAUSE)
