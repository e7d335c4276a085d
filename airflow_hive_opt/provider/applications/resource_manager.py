"""YARN's resource manager, by its REST API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

from airflow_hive_opt.provider.applications.cluster import NoAnswer, NotKnown, State, ask, short

_ACTIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
_NOT_FOUND = 404


@dataclass(frozen=True)
class ResourceManager:
    """The resource manager at one address, which has a scheme."""

    addresses: Sequence[str]
    kind: ClassVar[str] = "yarn"
    forgets: ClassVar[bool] = True

    async def state(self, id_: str) -> State:
        """See :class:`~airflow_hive_opt.provider.applications.cluster.Cluster`."""
        code, document = await ask("GET", self._url(id_))
        if code == _NOT_FOUND:
            raise NotKnown(f"the resource manager does not know {id_}")
        app = document.get("app")
        if not isinstance(app, dict) or not isinstance(app.get("state"), str):
            raise NoAnswer(f"the resource manager says nothing of {id_} (HTTP {code})")
        state, final = app["state"], app.get("finalStatus")
        if state in _ACTIVE:
            return State(_progress(state, app.get("progress"), app.get("runningContainers")))
        if state == "FINISHED" and final == "SUCCEEDED":
            return State(state, "succeeded")
        why = short(app.get("diagnostics"))
        return State(f"{state}, {final}" + (f": {why}" if why else ""), "failed")

    async def kill(self, id_: str) -> None:
        """See :class:`~airflow_hive_opt.provider.applications.cluster.Cluster`."""
        code, document = await ask("PUT", f"{self._url(id_)}/state", {"state": "KILLED"})
        if code >= 400 and code != _NOT_FOUND:
            told = document.get("RemoteException")
            why = short(told.get("message")) if isinstance(told, dict) else ""
            raise NoAnswer(f"the resource manager does not stop {id_}: HTTP {code} {why}".strip())

    def _url(self, id_: str) -> str:
        return f"{self.addresses[0]}/ws/v1/cluster/apps/{quote(id_, safe='')}"


def _progress(state: str, progress: object, containers: object) -> str:
    if state != "RUNNING" or not isinstance(progress, (int, float)):
        return state
    return f"{state}, {progress:.0f} %, {containers} containers"
