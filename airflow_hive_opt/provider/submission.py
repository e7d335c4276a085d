"""What a task prepares for the application that it submits, and reads back from it."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_hive_opt.documents.storage import DescriptorError, remove
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
)
from airflow_hive_opt.provider.attempts import cause_of

if TYPE_CHECKING:
    from airflow_hive_opt.documents.descriptor import StoragePath
    from airflow_hive_opt.documents.job import Job, Outcome, Status
    from airflow_hive_opt.provider.airflow_compat import Context

log = logging.getLogger(__name__)

_NO_CLUSTER_MODE = (
    "the deploy mode is 'cluster', but spark-submit starts Python drivers on a standalone cluster "
    "in client mode alone: take the deploy mode out of connection and task, or update to Airflow "
    "3.3 and its Spark provider 6.1"
)
_SECOND_DRIVER = (
    "if this worker dies, the application goes on, and a retry starts another one beside it. A "
    "retry follows the application with %s"
)
_LONGEST_NAME = 200  # Kubernetes' names of pods begin with it and have 253 characters
SUBMIT_CONF = {
    "spark.log.level": "WARN",  # at INFO the driver's start alone fills a page of the task's log
    "spark.ui.showConsoleProgress": "false",
    # Airflow retries. A retry by YARN would run a failed INSERT again without anybody seeing it.
    "spark.yarn.maxAppAttempts": "1",
}


def plain_uri(path: StoragePath) -> str:
    """The path's URI for fsspec, without the connection ID that only Airflow can look up."""
    uri = str(path)
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return f"file://{Path(uri).absolute()}"
    host, slash, key = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{key}"


def for_driver(job: Job, path: StoragePath) -> Job:
    """The job with a token, and with URIs that a driver without Airflow can open."""
    descriptor = job.descriptor and plain_uri(ObjectStoragePath(job.descriptor))
    key_sets = job.key_sets and plain_uri(ObjectStoragePath(job.key_sets))
    token = job.token or uuid4().hex
    return dataclasses.replace(
        job,
        path=plain_uri(path),
        descriptor=descriptor,
        key_sets=key_sets,
        index_path=_index_path(job.index_path),
        token=token,
    )


def _index_path(given: str) -> str:
    """The URI of the key indexes; none, with a line in the log, for a path that can't be one."""
    try:
        return given and plain_uri(ObjectStoragePath(given))
    except (ValueError, ImportError) as error:
        log.warning("key indexes are not used: index_path %r can't be used: %s", given, error)
        return ""


def application_name(context: Context) -> str:
    """The name of a task instance's application on Spark's pages."""
    instance: Any = context["ti"]
    return f"airflow {instance.dag_id}.{instance.task_id} {instance.run_id}"[:_LONGEST_NAME]


def check_submission(
    operator: Any, hook: Any, durable_is_asked_for: bool, is_recorded: bool = False
) -> None:
    """Raises ``ValueError`` for a submission that can't work, or can't be stopped or resumed.

    Logs a warning if a retry might start a driver beside the one of the attempt before it. It stops
    that one first if ``is_recorded``, see ``applications.earlier``.
    """
    # imported late: modules that only need an application's name do not load the Spark provider
    from airflow_hive_opt.provider.kubernetes import check_on_kubernetes
    from airflow_hive_opt.provider.spark_provider import RESUMES, follows_application
    from airflow_hive_opt.provider.yarn import check_on_yarn

    if hook._should_track_driver_status and not RESUMES:
        raise ValueError(_NO_CLUSTER_MODE)
    check_on_kubernetes(operator, hook, durable_is_asked_for)
    check_on_yarn(hook)
    if hook._connection["deploy_mode"] != "cluster" or not operator.retries:
        return
    if not RESUMES:
        log.warning(_SECOND_DRIVER, "Airflow 3.3 and its Spark provider 6.1")
    elif not follows_application(operator, hook) or not (operator.durable or is_recorded):
        option = "track_driver_via_k8s_api" if hook._is_kubernetes else "yarn_track_via_rm_api"
        log.warning(_SECOND_DRIVER, f"durable=True and {option}=True")


def prepare_environment() -> None:
    """Sets this process's environment for spark-submit, Java, and the driver.

    The machine's own ``spark-submit`` comes first, with its own Spark and Python. The driver learns
    this process's ID, to end with it. Raises ``SparkStartError`` if there is no Java, or if another
    package has installed files into PySpark's folder.
    """
    from airflow_hive_opt.spark.application.submitted import TASK_PID_VARIABLE
    from airflow_hive_opt.spark.session.java import ensure_java
    from airflow_hive_opt.spark.session.session import check_versions

    if shutil.which("spark-submit") is None:  # use PySpark's own, next to this interpreter
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
    """The name under which Airflow stores the application's ID for a retry that resumes it.

    A cleared task or another statement has another name, because only a retry may resume. Airflow
    keeps the stored IDs of cleared tasks. Raises ``ValueError``, see ``Job.digest_of_work``.
    """
    return f"spark_job_{job.digest_of_work()[:12]}_{cause_of(context)}"


@dataclass(frozen=True)
class HandedOver:
    """The descriptor that a job reads, as its local task returned it; both ``None`` for none."""

    descriptor: str | None
    digest: str | None


@dataclass(frozen=True)
class Application:
    """A submitted application: the path that it writes to, and the token of its outcome."""

    path: str
    token: str

    def outcome(self, handed_over: HandedOver) -> Outcome:
        """The application's outcome, with a descriptor URI that Airflow can open.

        This is the local task's descriptor, unless the map join did not use it and wrote its own.
        Raises ``DescriptorError`` if there is no outcome with this token.
        """
        from airflow_hive_opt.documents.job import read_outcome

        outcome = read_outcome(ObjectStoragePath(self.path), self.token)
        if outcome.summary is None:
            return outcome
        uri, digest = handed_over.descriptor, handed_over.digest
        followed = uri if outcome.summary.get("digest") == digest else None
        return dataclasses.replace(
            outcome, summary={**outcome.summary, "uri": followed or self.path}
        )

    def outcome_after(self, handed_over: HandedOver, failure: Exception | None) -> Outcome:
        """The outcome after submitting, even if that failed: a failed task may have an outcome.

        Raises ``AirflowException``, or ``AirflowFailException`` if a retry would run the statement
        again.
        """
        try:
            return self.outcome(handed_over)
        except DescriptorError as error:
            if isinstance(failure, AirflowFailException):
                raise failure from None
            if failure is not None:
                raise AirflowException(f"{failure} (it wrote no outcome: {error})") from None
            raise AirflowFailException(
                "the application succeeded, so the statement may have run, but it wrote no "
                f"outcome: {error}. See its log. The task and the driver must both reach the "
                "storage of descriptor_path"
            ) from None

    def has_finished(self) -> bool:
        """Whether the application wrote an outcome with which a retry must not run it again.

        Raises ``DescriptorError`` if the storage can't be read.
        """
        from airflow_hive_opt.documents.job import Status

        return self._status() not in (None, Status.FAILED)

    def has_ended(self) -> bool:
        """Whether the application wrote an outcome, which is the last thing that it does.

        Raises ``DescriptorError`` if the storage can't be read.
        """
        return self._status() is not None

    def _status(self) -> Status | None:
        from airflow_hive_opt.documents.job import outcome_if_any

        outcome = outcome_if_any(ObjectStoragePath(self.path), self.token)
        return None if outcome is None else outcome.status

    def prepare(self) -> None:
        """Deletes the outcome of an earlier submission; raises ``DescriptorError``."""
        from airflow_hive_opt.documents.job import outcome_path

        remove(outcome_path(ObjectStoragePath(self.path)))

    def claim(self, cause: str) -> None:
        """Keeps earlier submissions of the task from beginning; raises ``DescriptorError``.

        If ``cause`` is theirs, this one's driver finds out whether they may have written.
        """
        from airflow_hive_opt.documents import claims

        claims.take(ObjectStoragePath(self.path), self.token, cause)

    def store(self, context: Context, key: str) -> None:
        """Stores the application for a retry that may resume it."""
        if (store := context.get("task_state_store")) is not None:
            store.set(f"{key}_path", self.path)
            store.set(f"{key}_token", self.token)

    @classmethod
    def stored(cls, context: Context, key: str) -> Application | None:
        """The stored application, if there is one; its token is empty if it was not stored."""
        store = context.get("task_state_store")
        if store is None or not (path := store.get(f"{key}_path")):
            return None
        return cls(str(path), str(store.get(f"{key}_token") or ""))


def may_resume(operator: Any, job: Job, context: Context) -> bool:
    """Whether an earlier attempt of the job has submitted an application.

    A local task of this attempt must not end the run then: that application may have written.
    """
    if job.descriptor is not None or not getattr(operator, "durable", False):
        return False
    try:
        return Application.stored(context, resumption_key(job, context)) is not None
    except ValueError:  # the job can't be submitted
        return False
