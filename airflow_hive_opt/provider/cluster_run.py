"""One attempt's application on a cluster: how it is submitted, found again, followed and stopped.

Airflow's ``SparkSubmitOperator`` directs this: it calls methods of the operator, which call these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider import standalone
from airflow_hive_opt.provider.airflow_compat import RESUMES
from airflow_hive_opt.provider.clusters import CanNotFollow, cluster_of
from airflow_hive_opt.provider.deferral import LEAST_INTERVAL, NOT_DEFERRED, deadline, failure_of
from airflow_hive_opt.provider.earlier_application import EarlierApplication, settle
from airflow_hive_opt.provider.following import follow, run, stop
from airflow_hive_opt.provider.submission import Application, HandedOver
from airflow_hive_opt.triggers.application import ApplicationTrigger

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.cluster import Cluster

_SECONDS_TO_STOP = 25.0


class ClusterRun:
    """The application ``own`` of this attempt, or the one of an earlier attempt that it follows.

    ``application`` is the one whose outcome counts. ``defers`` says that the task waits in the
    triggerer; it is false again if the triggerer can't follow the application.
    """

    def __init__(self, own: Application, handed_over: HandedOver, defers: bool, log: Any) -> None:
        self.own = self.application = own
        self.handed_over = handed_over
        self.defers = defers
        self._cluster: Cluster | None = None
        self._driver = ""
        self._log = log

    def shipped(self, hook: Any, files: tuple[Path, Path], root: str) -> tuple[str, str]:
        """The URIs of the driver's files, where its machine can read them.

        Finds out who can follow the application. Raises ``ValueError`` and ``DescriptorError``.
        """
        main, package = map(str, files)
        try:
            self._cluster = cluster_of(hook) if RESUMES else None
        except CanNotFollow as why:
            if self.defers:
                self._log.info(NOT_DEFERRED, why)
        self.defers = self.defers and self._cluster is not None
        if self._cluster is not None and standalone.in_cluster_mode(hook):
            main, package = standalone.shared(files, root)
        return main, package

    @property
    def defers_to(self) -> str | None:
        """The kind of the cluster that the triggerer asks; ``None`` if the task does not defer."""
        return self._cluster.kind if self._cluster is not None and self.defers else None

    def is_done(self, context: Context, key: str, durable: bool) -> bool:
        """Whether an earlier attempt's application has done the work; lets no other one go on.

        Raises ``AirflowFailException`` if one may go on, and ``DescriptorError``.
        """
        if durable and (stored := Application.stored(context, key)) is not None:
            self.application = stored
        if (done := settle(context, self.own, key, durable, self._log)) is not None:
            self.application = done
        return done is not None

    def submit(
        self, context: Context, key: str, hook: Any, script: str, spark_submit: Callable[[], Any]
    ) -> str | None:
        """Submits ``script`` and stores it for a retry that may resume it; returns its ID.

        ``spark_submit`` does it, where the cluster accepts that.
        """
        self.application = self.own
        self.own.prepare()
        self.own.store(context, key)
        known = None
        if self._cluster is not None:
            known = EarlierApplication.of(self.own, key, self._cluster)
            known.store(context)
            self.own.claim()
        if self._cluster is not None and standalone.in_cluster_mode(hook):
            id_ = standalone.submit(hook, script, self._cluster)
            self._log.info("the master starts the driver %s", id_)
        else:
            id_ = spark_submit()
        if known is not None and id_ is not None:
            dataclasses.replace(known, id=id_).store(context)
        return id_

    def waits_for(self, hook: Any, id_: str, interval: float) -> bool:
        """Waits for a driver on a standalone cluster; ``False`` for others, without waiting.

        Raises ``AirflowException``.
        """
        if self._cluster is None or not standalone.in_cluster_mode(hook):
            return False
        self._driver = id_
        ended = run(follow(self._cluster, id_, interval, None, self._log))
        if (failure := failure_of(ended)) is not None:
            raise failure
        return True

    def stop(self) -> bool:
        """Stops the driver that :meth:`waits_for` waits for; ``False`` if there is none."""
        if self._cluster is None or not self._driver:
            return False
        run(stop(self._cluster, self._driver, _SECONDS_TO_STOP))
        return True

    def trigger(
        self, context: Context, id_: str, interval: float, execution_timeout: Any
    ) -> ApplicationTrigger:
        """The trigger that follows the application."""
        assert self._cluster is not None, "else it does not defer"
        self._log.info("the triggerer waits for %s", id_)
        every, until = max(float(interval), LEAST_INTERVAL), deadline(context, execution_timeout)
        return ApplicationTrigger(self._cluster.kind, self._cluster.addresses, id_, every, until)

    def state(self) -> dict[str, Any]:
        """What the task needs to go on after the trigger, for :meth:`resumed`."""
        return {**dataclasses.asdict(self.application), **dataclasses.asdict(self.handed_over)}


def resumed(state: dict[str, Any]) -> tuple[Application, HandedOver]:
    """The application and what was handed over, from :meth:`ClusterRun.state`."""
    return (
        Application(state["path"], state["token"]),
        HandedOver(state["descriptor"], state["digest"]),
    )
