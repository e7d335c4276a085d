"""The application that an earlier attempt of the task has submitted, and its end.

Airflow's store keeps it through retries and clears. An attempt that does not follow it stops it
first, so that never two of them write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents import claims
from airflow_hive_opt.provider.airflow_compat import AirflowFailException, ObjectStoragePath
from airflow_hive_opt.provider.applications.following import run, stop
from airflow_hive_opt.provider.applications.kinds import cluster_at
from airflow_hive_opt.provider.submission import Application

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.applications.cluster import Cluster

_NAME = "hive_opt_application"
_SECONDS_TO_END = 60.0
# Spark's workers come back to a restarted master within 90 s, and it stops drivers it doesn't know.
_SECONDS_UNKNOWN = 120.0
# Of the IDs that YARN and a standalone cluster know.
_PREFIXES = ("application_", "driver-")


@dataclass(frozen=True)
class EarlierApplication:
    """A submission: its resumption key, path and token, its cluster, and its ID there.

    The ID is empty if the attempt ended before it knew it.
    """

    key: str
    path: str
    token: str
    cluster: str
    addresses: Sequence[str]
    id: str = ""

    @classmethod
    def of(cls, application: Application, key: str, cluster: Cluster) -> EarlierApplication:
        """The submission of an attempt that begins."""
        return cls(key, application.path, application.token, cluster.kind, list(cluster.addresses))

    @classmethod
    def stored(cls, context: Context) -> EarlierApplication | None:
        """The last submission of this task instance."""
        store: Any = context.get("task_state_store")
        found = store.get(_NAME) if store is not None else None
        own = {field.name for field in fields(cls)}  # of another version of this package, or not
        return cls(**found) if isinstance(found, dict) and found.keys() == own else None

    def store(self, context: Context) -> None:
        """Keeps it for later attempts."""
        if (store := context.get("task_state_store")) is not None:
            store.set(_NAME, asdict(self))

    @property
    def application(self) -> Application:
        """Where its outcome is."""
        return Application(self.path, self.token)

    def id_of_begun(self) -> str:
        """Its ID on the cluster, if the attempt before did not get to know it, and it has begun.

        Empty if it has not begun: then it never will, once another submission has the claim. Raises
        ``AirflowFailException`` if it has begun and nobody knows its ID, and ``DescriptorError``.
        """
        begun = claims.begun(ObjectStoragePath(self.path), self.token)
        if begun is None or self.application.has_ended():
            return ""
        if begun.application_id.startswith(_PREFIXES):
            return begun.application_id
        raise AirflowFailException(
            "the attempt before this one was killed while it submitted its application "
            f"({begun.application_id or 'its ID is not known'}), which may still run: make sure "
            "that it has ended. If it has written its rows, mark this task as successful, else "
            "clear it"
        )

    def end(self, id_: str, log: Any) -> None:
        """Stops the application ``id_`` and waits for its end.

        It has lost its claim: if it has not begun, it never will. Raises ``AirflowFailException``
        if it may go on, and ``DescriptorError``.
        """
        if self.application.has_ended():
            return
        cluster = cluster_at(self.cluster, self.addresses)
        log.info("an earlier attempt has submitted %s: it must end before another one starts", id_)
        begun = claims.begun(ObjectStoragePath(self.path), self.token) is not None
        unknown = _SECONDS_UNKNOWN if begun and cluster.forgets else 0.0
        ended = run(stop(cluster, id_, _SECONDS_TO_END, unknown))
        if ended is None:
            raise AirflowFailException(
                f"the application {id_} of an earlier attempt may still run, and can't be stopped. "
                "Stop it before you clear this task. If its cluster is gone, delete "
                f"{_NAME!r} from the task's state"
            )
        log.info("%s", ended.message)


def settle(
    context: Context, own: Application, key: str, durable: bool, log: Any
) -> Application | None:
    """Lets no earlier application go on beside the one that ``own`` is to be.

    An application of the same work (``key``) is left to Airflow, which follows it by its stored ID,
    if ``durable``. Returns it if it has no ID and its outcome counts. Every other one is stopped.
    Raises ``AirflowFailException`` if one may go on, and ``DescriptorError``.
    """
    found = EarlierApplication.stored(context)
    if found is None:
        return None
    is_same = found.key == key and durable
    id_ = found.id
    if not (is_same and id_):
        # where its driver looks: descriptor_path may have changed since
        there = ObjectStoragePath(found.path).with_name(ObjectStoragePath(own.path).name)
        claims.take(there, own.token, key)
        id_ = id_ or found.id_of_begun()
    store: Any = context["task_state_store"]
    if is_same and id_:
        store.set(key, id_)
    elif is_same and found.application.has_finished():
        return found.application
    elif id_:
        found.end(id_, log)
    return None
