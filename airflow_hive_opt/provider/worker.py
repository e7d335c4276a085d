"""The local task in the task's own process, without Spark, by the task's connections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import replace
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.storage import DescriptorError, fsspec_uri
from airflow_hive_opt.hooks.hive_metastore import (
    HiveMetastoreHook,
    metastore_of,
    spark_conf_for,
)
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
)
from airflow_hive_opt.provider.glue import is_glue, names_glue
from airflow_hive_opt.provider.without_stack import without_stack

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.metastores.metastore import Remote
    from airflow_hive_opt.provider.airflow_compat import Connection
    from airflow_hive_opt.provider.connections import Deployment
    from airflow_hive_opt.worker.local_task import Found

log = logging.getLogger(__name__)

_URIS = "spark.hadoop.hive.metastore.uris"
# Settings of a metastore. The Thrift client has the first two, if they are the connection's.
_SECURED = (
    "spark.hadoop.hive.metastore.sasl.enabled",
    "spark.hadoop.hive.metastore.use.SSL",
    "spark.hadoop.hive.metastore.thrift.framed.transport.enabled",
    "spark.hadoop.hive.metastore.thrift.compact.protocol.enabled",
)
_LONGEST = 300  # seconds; a store that does not answer must not stop the task
_INSTALL = "DuckDB or PyArrow is not installed: pip install 'airflow-hive-opt[worker]'"


class WorkerLocalTask:
    """One attempt at a job's local task in this process.

    ``choice`` is the operator's ``local_task``, ``auto`` or ``worker``. ``place`` is where Spark
    runs, and ``conf`` are the task's settings of it. ``metastore_conn_id`` and ``storage_conn_id``
    are connections to the session's metastore and to the storage of the small tables. A thread does
    the work, so that Spark can start meanwhile. Raises ``AirflowFailException`` if there is no such
    connection to a metastore.
    """

    def __init__(
        self,
        job: Job,
        choice: str,
        place: Deployment,
        conf: Mapping[str, Any],
        metastore_conn_id: str | None,
        storage_conn_id: str | None,
    ) -> None:
        self._job = job
        self._is_required = choice == "worker"
        self._answer: Future[Found | str] = Future()
        # here, because Airflow 3.0 does not answer two threads of a task at the same time
        connection = None
        if metastore_conn_id is not None and place.kind != "connect":
            connection = HiveMetastoreHook(metastore_conn_id).connection()

        def work() -> None:
            if place.kind == "connect":
                found: Found | str = "the worker can't use the metastore of a Spark Connect server"
            else:
                found = _found(job, conf, connection, storage_conn_id)
            self._answer.set_result(found)

        Thread(target=work, name="local task", daemon=True).start()

    def job_or_outcome(self, patience: float | None = None) -> Job | Outcome:
        """The job to run on Spark, with the local task's list if there is one.

        An outcome ends the run: the local task alone was asked for, or a gate is closed.
        ``patience`` is how long to wait for the worker, in seconds; default: five minutes. Raises
        ``AirflowFailException`` if Spark must not do the local task and the worker can't.
        """
        from airflow_hive_opt.documents.job import Stages, Status
        from airflow_hive_opt.worker.local_task import hand_over

        job, path = self._job, ObjectStoragePath(self._job.path)
        try:
            waits = _LONGEST if patience is None or self._is_required else patience
            found = self._answer.result(waits)
        except StillRunning:
            found = "the worker has not finished, and Spark is ready"
        if isinstance(found, str):
            if self._is_required:
                message = f"the worker can't run the local task: {found}. Set local_task to 'auto'"
                raise without_stack(AirflowFailException(message))
            log.info("Spark runs the local task: %s", found)
            return job
        try:
            outcome = hand_over(found, job, path)
        except DescriptorError as error:
            raise AirflowException(str(error)) from None
        if job.stages is Stages.LOCAL_TASK or outcome.status is not Status.DONE:
            return outcome
        return replace(job, descriptor=job.path, digest=found.descriptor.digest)


def _found(
    job: Job,
    conf: Mapping[str, Any],
    connection: Connection | None,
    storage_conn_id: str | None,
) -> Found | str:
    """What the local task finds, or why Spark has to run it; an error costs nothing else."""
    if any(find_spec(name) is None for name in ("duckdb", "pyarrow")):
        return _INSTALL
    from airflow_hive_opt.worker.local_task import Place, find
    from airflow_hive_opt.worker.unanswered import Unanswered

    try:
        given = {name: str(value) for name, value in conf.items()}
        settings = {**(spark_conf_for(connection) if connection else {}), **given}
        metastore, is_on_glue = _metastore(connection, settings)
        opens = (opener(storage_conn_id), storage_conn_id is not None, ObjectStoragePath)
        return find(job, Place(metastore, is_on_glue, settings, *opens))
    except Unanswered as why:
        return str(why)
    except AirflowFailException as error:
        return str(error)
    except Exception as error:
        log.warning("the local task has failed in the worker", exc_info=True)
        return f"{type(error).__name__}: {error}"


def _metastore(connection: Connection | None, settings: Mapping[str, str]) -> tuple[Remote, bool]:
    """A client of the session's metastore, and whether it is AWS Glue; raises ``Unanswered``.

    ``settings`` are those of the connection, unless the task has others.
    """
    from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
    from airflow_hive_opt.metastores.thrift.security import PLAIN
    from airflow_hive_opt.provider.metastore_security import security_of
    from airflow_hive_opt.worker.unanswered import Unanswered

    if settings.get("spark.sql.catalogImplementation", "hive") != "hive":
        raise Unanswered("spark.sql.catalogImplementation is not hive: there is no Hive metastore")
    by_glue = connection is not None and is_glue(connection)
    own = {} if connection is None or by_glue else spark_conf_for(connection)
    for name in _SECURED:
        given = settings.get(name, "false").lower()
        if given != own.get(name, "false"):
            raise Unanswered(f"{name} is set to {given}, but not by the connection")
    if connection is not None and by_glue:
        return metastore_of(connection), True
    if names_glue(settings):  # the URIs do not count then
        raise Unanswered("the session's metastore is AWS Glue: set metastore_conn_id")
    if not settings.get(_URIS):
        raise Unanswered("the task names no metastore: set metastore_conn_id")
    try:
        security = PLAIN if connection is None else security_of(connection)
        return ThriftMetastore(settings[_URIS], security=security), False
    except ValueError as error:
        raise Unanswered(str(error)) from None


def opener(conn_id: str | None) -> Callable[[str], Any]:
    """Opens the folders of tables, whose URIs have Hadoop's schemes."""
    from airflow_hive_opt.worker.unanswered import Unanswered

    def open_path(uri: str) -> ObjectStoragePath:
        place = fsspec_uri(uri)
        if place.startswith("file:"):
            return ObjectStoragePath(place)
        try:
            return ObjectStoragePath(place, conn_id=conn_id)
        except (ValueError, ImportError) as error:
            raise Unanswered(f"can't open {uri}: {error}") from None

    return open_path
