"""The master of a Spark standalone cluster, by its REST API (``spark.master.rest.enabled``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from airflow_hive_opt.provider.applications.cluster import (
    NoAnswer,
    NotKnown,
    NotReached,
    State,
    ask,
    short,
)

# RELAUNCHING needs supervise, UNKNOWN is a master that recovers; DriverState.scala has them all.
_ACTIVE = ("SUBMITTED", "RUNNING", "RELAUNCHING", "UNKNOWN")


@dataclass(frozen=True)
class StandaloneMaster:
    """The masters of one cluster, of which one is active; each address has a scheme."""

    addresses: Sequence[str]
    kind: ClassVar[str] = "standalone"
    forgets: ClassVar[bool] = True

    async def state(self, id_: str) -> State:
        """See :class:`~airflow_hive_opt.provider.applications.cluster.Cluster`."""
        answer = await self._answer("GET", f"status/{quote(id_, safe='')}")
        state, why = answer.get("driverState"), short(answer.get("message"))
        if not answer.get("success"):
            # only an active master that does not know the driver gives no reason
            raise (
                NoAnswer(f"the master says: {why}")
                if why
                else NotKnown(f"the master does not know {id_}")
            )
        if state in _ACTIVE:
            return State(str(state))
        if state == "FINISHED":
            return State(state, "succeeded")
        return State(f"{state}" + (f": {why}" if why else ""), "failed")

    async def kill(self, id_: str) -> None:
        """See :class:`~airflow_hive_opt.provider.applications.cluster.Cluster`."""
        await self._answer("POST", f"kill/{quote(id_, safe='')}")

    async def submit(self, request: Mapping[str, Any]) -> str:
        """Submits a driver and returns its ID; raises :class:`NoAnswer`.

        A driver may have been submitted even so: the answer may have been lost.
        """
        answer = await self._answer("POST", "create", dict(request), is_once=True)
        if not answer.get("success") or not answer.get("submissionId"):
            raise NoAnswer(f"the master does not start the driver: {short(answer.get('message'))}")
        return str(answer["submissionId"])

    async def _answer(
        self, method: str, path: str, body: Any = None, is_once: bool = False
    ) -> dict[str, Any]:
        """The active master's answer, else the last one's; raises :class:`NoAnswer`.

        With ``is_once``, no other master gets the request once one may have got it.
        """
        failure: NoAnswer | None = None
        answer: dict[str, Any]
        refusal: dict[str, Any] | None = None
        for address in self.addresses:
            try:
                code, answer = await ask(method, f"{address}/v1/submissions/{path}", body)
            except NoAnswer as error:
                if is_once and not isinstance(error, NotReached):
                    raise
                failure = error
                continue
            if "success" not in answer:
                why = short(answer.get("message")) or f"HTTP {code}"
                failure = NoAnswer(f"{address} is no REST API of a master: {why}")
            elif answer["success"] or not answer.get("message"):
                return answer
            else:
                refusal = answer
        if refusal is not None:
            return refusal
        raise failure or NoAnswer("no master is named")
