"""Drivers on Kubernetes: their pods, by the API server of ``[kubernetes_executor]``.

Airflow's client for it blocks, so each call has a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_hive_opt.provider.applications.cluster import NoAnswer, NotKnown, State

_NOT_FOUND = 404
_SECONDS = 20


@dataclass(frozen=True)
class DriverPods:
    """The API server's pods; an ID is ``namespace:name``, as the Spark provider stores it.

    It needs no ``addresses``: Airflow's configuration has the server's.
    """

    addresses: Sequence[str] = ()
    kind: ClassVar[str] = "kubernetes"
    forgets: ClassVar[bool] = False

    async def state(self, id_: str) -> State:
        """See :class:`~airflow_hive_opt.provider.applications.cluster.Cluster`."""
        pod = await asyncio.to_thread(_call, "read_namespaced_pod", id_)
        phase = str(pod.status.phase or "Pending")
        if phase == "Unknown":
            raise NoAnswer(f"Kubernetes has lost the node of {id_}")
        if phase == "Failed":
            return State(f"{phase}{_why(pod)}", "failed")
        return State(phase, "succeeded" if phase == "Succeeded" else None)

    async def kill(self, id_: str) -> None:
        """See :class:`~airflow_hive_opt.provider.applications.cluster.Cluster`."""
        await asyncio.to_thread(_call, "delete_namespaced_pod", id_)


def _call(method: str, id_: str) -> Any:
    """Calls the API for a pod; raises :class:`NoAnswer` and :class:`NotKnown`."""
    from kubernetes.client import ApiException

    from airflow_hive_opt.provider.airflow_compat import kubernetes_client

    namespace, _, name = id_.partition(":")
    try:
        call: Callable[..., Any] = getattr(kubernetes_client(), method)
        return call(name, namespace, _request_timeout=_SECONDS)
    except ApiException as error:
        if error.status == _NOT_FOUND:
            raise NotKnown(f"Kubernetes has no pod {id_}") from None
        raise NoAnswer(f"Kubernetes answers with HTTP {error.status} {error.reason}") from None
    except Exception as error:  # noqa: BLE001 - no configuration, or no connection
        raise NoAnswer(f"Kubernetes: {str(error) or type(error).__name__}") from None


def _why(pod: Any) -> str:
    ended = [each.state and each.state.terminated for each in pod.status.container_statuses or ()]
    return "".join(f", exit code {each.exit_code} ({each.reason})" for each in ended if each)
