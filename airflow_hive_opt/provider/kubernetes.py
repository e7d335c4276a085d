"""What an application on Kubernetes needs beside what every cluster needs."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    why_kubernetes_cant_be_called,
)
from airflow_hive_opt.provider.spark_provider import follows_application

_POD_NAME = "spark.kubernetes.driver.pod.name"
_LONGEST_NAME = 200  # Kubernetes allows 253 characters
_NOTHING_TO_STOP = (
    "the connection names no namespace: add it to the connection's extra as 'namespace', or to "
    "conf as 'spark.kubernetes.namespace'. Without it, Airflow can't stop the driver"
)
_NO_CLIENT = (
    "Airflow can't call Kubernetes' API, so it can't stop the driver. Set in_cluster and "
    "config_file in Airflow's section [kubernetes_executor]"
)
_NOT_FOLLOWED = (
    "durable=True on Kubernetes needs the deploy mode 'cluster' and track_driver_via_k8s_api=True: "
    "without them, a retry can't find the driver of the attempt before it"
)
# What spark-submit says in the middle of a Java stack, and what to do.
_REJECTED = {
    "Please specify spark.kubernetes.file.upload.path": (
        "conf has no 'spark.kubernetes.file.upload.path': give a folder in storage that this "
        "machine can write and the driver can read. spark-submit puts the application's files there"
    ),
    "Must specify the driver container image": (
        "conf has no 'spark.kubernetes.container.image': give an image with Spark and Python"
    ),
}


def in_cluster_mode(hook: Any) -> bool:
    """Whether the driver is a pod."""
    return bool(hook._is_kubernetes) and hook._connection["deploy_mode"] == "cluster"


def with_named_driver_pod(hook: Any) -> Any:
    """The hook, with a name for the driver's pod before it exists: a kill and a retry find it.

    The Spark provider searches Spark's log for the name. It finds none there if ``spark-submit``
    does not wait and the namespace is not called ``spark``.
    """
    if in_cluster_mode(hook):
        words = re.sub(r"[^a-z0-9]+", "-", str(hook._name).lower()).strip("-")[:_LONGEST_NAME]
        name = f"{words}-{uuid4().hex[:16]}-driver"
        hook._kubernetes_driver_pod = hook._conf.setdefault(_POD_NAME, name)
    return hook


def check_on_kubernetes(operator: Any, hook: Any, durable_is_asked_for: bool) -> None:
    """Raises ``ValueError`` for a submission that could be neither stopped nor resumed."""
    if not hook._is_kubernetes:
        return
    if in_cluster_mode(hook) and not hook._connection["namespace"]:
        raise ValueError(_NOTHING_TO_STOP)
    if in_cluster_mode(hook) and (why := why_kubernetes_cant_be_called()) is not None:
        raise ValueError(f"{_NO_CLIENT}: {why}")
    if durable_is_asked_for and not follows_application(operator, hook):
        raise ValueError(_NOT_FOLLOWED)


def explained(failure: Exception, hook: Any, path: str) -> Exception:
    """The failure of an application that writes to ``path``, with what to do about it.

    An ``AirflowFailException`` if no pod was created and a retry fails too.
    """
    if hook is None or not in_cluster_mode(hook):
        return failure
    for text, instead in _REJECTED.items():
        if text in str(failure):
            return AirflowFailException(instead)
    if "://" in path.removeprefix("file://"):
        return failure
    return AirflowException(
        f"{failure}. descriptor_path is a folder of this machine. The driver's pod needs the same "
        "folder as a volume; otherwise take object storage"
    )
