"""What a submitted application needs of the task that submits it, and leaves for it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
)
from airflow_hive_opt.runtime.storage import DescriptorError, remove

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.runtime.descriptor import StoragePath
    from airflow_hive_opt.spark.application.job import Job, Outcome

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
    """The path's URI, as fsspec reads it, without the connection that only Airflow can look up."""
    uri = str(path)
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return f"file://{Path(uri).absolute()}"
    host, slash, key = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{key}"


def application_name(context: Context) -> str:
    """What Spark's pages call the application of a task instance."""
    instance: Any = context["ti"]
    return f"airflow {instance.dag_id}.{instance.task_id} {instance.run_id}"


def prepare_environment() -> None:
    """Lets this process find spark-submit and Java, and its driver know whose it is.

    The machine's own ``spark-submit`` comes first, with its own Spark and Python. Raises
    ``SparkStartError``: no Java, or a PySpark that another package has written into.
    """
    from airflow_hive_opt.spark.application.submitted import TASK_PID_VARIABLE
    from airflow_hive_opt.spark.session.java import ensure_java
    from airflow_hive_opt.spark.session.session import check_versions

    if shutil.which("spark-submit") is None:  # PySpark's own, beside this interpreter
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = Path(shutil.which("spark-submit") or "")
    is_own = found.parent == Path(sys.executable).parent
    if is_own:
        # a spark-submit of another Spark knows its own Python, and finds itself by this variable
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        check_versions()
    os.environ[TASK_PID_VARIABLE] = str(os.getpid())
    ensure_java(is_own)


def resumption_key(job: Job, context: Context) -> str:
    """The name under which the application's id is kept for an attempt that resumes it.

    Only a retry may resume: a cleared task and another statement have other names. Airflow keeps
    the stored ids of cleared tasks. Raises ``ValueError``, see ``Job.digest_of_work``.
    """
    instance: Any = context["ti"]
    run: Any = context.get("dag_run")
    cleared = getattr(run, "clear_number", None) or 0
    return f"spark_job_{job.digest_of_work()[:12]}_{cleared}_{getattr(instance, 'max_tries', 0)}"


@dataclass(frozen=True)
class Application:
    """Where a submitted application writes, and the token that its outcome bears."""

    path: str
    token: str

    def outcome(self, job: Job) -> Outcome:
        """What it left, with its descriptor under the name that Airflow can open.

        That is the local task's, unless a map join left it aside and wrote its own. Raises
        ``DescriptorError`` where there is none that can be accepted.
        """
        from airflow_hive_opt.spark.application.job import read_outcome

        outcome = read_outcome(ObjectStoragePath(self.path), self.token)
        if outcome.summary is None:
            return outcome
        followed = job.descriptor and outcome.summary.get("digest") == job.digest
        uri = job.descriptor if followed else self.path
        return dataclasses.replace(outcome, summary={**outcome.summary, "uri": uri})

    def outcome_after(self, job: Job, failure: Exception | None) -> Outcome:
        """Its outcome, where submitting may have failed; a failed task may have an outcome too.

        Raises ``AirflowException``, or ``AirflowFailException`` where another attempt would run
        the statement again.
        """
        try:
            return self.outcome(job)
        except DescriptorError as error:
            if failure is not None:
                raise AirflowException(f"{failure} (it left no outcome: {error})") from None
            raise AirflowFailException(
                f"the application ended well, so the statement may have run, but it left no "
                f"outcome: {error}. Look at its log: does its driver reach that storage? "
                "descriptor_path must be one that both reach"
            ) from None

    def prepare(self) -> None:
        """Removes what another life of this run has left; raises ``DescriptorError``."""
        from airflow_hive_opt.spark.application.job import outcome_path

        remove(outcome_path(ObjectStoragePath(self.path)))

    def store(self, context: Context, key: str) -> None:
        """Remembers the application for the attempt that may have to resume it."""
        if (store := context.get("task_state_store")) is not None:
            store.set(f"{key}_path", self.path)
            store.set(f"{key}_token", self.token)

    @classmethod
    def stored(cls, context: Context, key: str) -> Application | None:
        """The application that was stored; without a token where that was not."""
        store = context.get("task_state_store")
        if store is None or not (path := store.get(f"{key}_path")):
            return None
        return cls(str(path), str(store.get(f"{key}_token") or ""))
