"""What a submitted application needs of the task that submits it, and leaves for it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import ObjectStoragePath
from airflow.sdk.exceptions import AirflowException

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_hive_opt.runtime.descriptor import StoragePath
    from airflow_hive_opt.spark.job import Job, Outcome

NO_CLUSTER_MODE = (
    "the deploy mode is 'cluster', but a standalone cluster runs Python drivers in client mode "
    "alone: take the deploy mode out of connection and task, or submit to YARN or Kubernetes"
)
SUBMIT_CONF = {
    "spark.log.level": "WARN",  # the driver's start alone is a page of INFO in the task's log
    "spark.ui.showConsoleProgress": "false",
    # Airflow retries; YARN doing it too would run a failed INSERT unseen.
    "spark.yarn.maxAppAttempts": "1",
}


def plain_uri(path: StoragePath) -> str:
    """The path's URI without the Airflow connection, which only Airflow can look up."""
    return str(path.as_uri())


def prepare_environment() -> None:
    """Lets this process find spark-submit and Java, and its driver know whose it is.

    Raises ``JavaNotFoundError``.
    """
    from airflow_hive_opt.spark.java import ensure_java
    from airflow_hive_opt.spark.submitted import TASK_PID_VARIABLE

    if shutil.which("spark-submit") is None:  # PySpark's own, beside this interpreter
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ[TASK_PID_VARIABLE] = str(os.getpid())
    ensure_java()


def resumption_key(job: Job, context: Context) -> str:
    """The name under which the application's id is kept for an attempt that resumes it.

    Only a retry may resume: a cleared task and another statement have other names. Airflow keeps
    the stored ids of cleared tasks.
    """
    instance: Any = context["ti"]
    run: Any = context.get("dag_run")
    cleared = getattr(run, "clear_number", None) or 0
    work = dataclasses.replace(job, path="").to_json()
    digest = hashlib.sha256(work.encode()).hexdigest()[:12]
    return f"spark_job_{digest}_{cleared}_{getattr(instance, 'max_tries', 0)}"


def outcome_left_at(path: ObjectStoragePath) -> Outcome | None:
    """The outcome of the application that wrote at ``path``; ``None`` where it left none."""
    from airflow_hive_opt.spark.job import Outcome, outcome_path

    place = outcome_path(path)
    try:
        return Outcome.from_json(place.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AirflowException(f"the outcome at {place} can't be read: {error}") from error
