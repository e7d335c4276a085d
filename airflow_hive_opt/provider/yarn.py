"""What an application on YARN needs beside what every cluster needs."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from typing import Any

from airflow_hive_opt.provider.airflow_compat import AirflowFailException
from airflow_hive_opt.provider.spark_provider import RESUMES, follows_application

_NO_RESOURCE_MANAGER = (
    "the connection does not say where YARN's resource manager is: add its address to the "
    "connection's extra as 'yarn_resourcemanager_webapp_address', such as "
    "http://rm.example.com:8088. Without it, Airflow can't stop the application"
)
_NO_COMMAND = (
    "this machine has no command 'yarn', with which Airflow's Spark provider stops applications: "
    "add it to PATH, or update to Airflow 3.3 and its Spark provider 6.1"
)
_SECONDS_BETWEEN_LOOKS = 2.0
_LOOKS = 30
_ACTIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")


def in_cluster_mode(hook: Any) -> bool:
    """Whether the driver is a container of YARN."""
    return bool(hook._is_yarn) and hook._connection["deploy_mode"] == "cluster"


def check_on_yarn(hook: Any) -> None:
    """Raises ``ValueError`` for an application that Airflow could not stop."""
    if not in_cluster_mode(hook):
        return
    if not RESUMES and not getattr(hook, "_yarn_track_via_rm_api", False):
        if shutil.which("yarn") is None:
            raise ValueError(_NO_COMMAND)
        return
    try:
        hook._get_yarn_rm_base_url()
    except ValueError:
        raise ValueError(_NO_RESOURCE_MANAGER) from None
    try:
        hook._resolved_yarn_rm_auth  # noqa: B018 - it raises
    except RuntimeError as error:
        raise ValueError(f"Airflow can't stop the application: {error}") from None


def prepare_kill(hook: Any) -> None:
    """Lets the hook ask Airflow now for what stops an application on YARN.

    Airflow calls ``on_kill`` in the thread that may be waiting for another answer of Airflow: a
    request from there would wait for ever.
    """
    if in_cluster_mode(hook) and hasattr(hook, "_get_yarn_rm_base_url"):
        with suppress(ValueError):  # no address: then the application can't be stopped that way
            hook._get_yarn_rm_base_url()


def stop_after(operator: Any, failure: Exception, instance: Any) -> Exception:
    """Stops the application of a ``spark-submit`` that has failed, if no retry will follow it.

    Returns the failure, or an ``AirflowFailException`` if the application may go on. A retry would
    then write beside it. ``instance`` is the task instance.
    """
    hook = operator._hook
    if hook is None or not RESUMES or not in_cluster_mode(hook) or not hook._yarn_application_id:
        return failure
    is_last_try = instance.try_number > getattr(instance, "max_tries", 0)
    if not is_last_try and operator.durable and follows_application(operator, hook):
        return failure
    id_, why = hook._yarn_application_id, "it does not end"
    for _ in range(_LOOKS):
        try:
            if hook.query_yarn_application_status(id_).upper() not in _ACTIVE:
                return failure
            hook._kill_yarn_application(id_)
        except RuntimeError as error:
            why = str(error)
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return AirflowFailException(
        f"{failure}. The application {id_} may still run, and can't be stopped ({why}). Stop it "
        "before you clear this task"
    )
