"""The run of one attempt on a cluster: its application is submitted, followed, and found again.

Airflow's ``SparkSubmitOperator`` directs this: it calls methods of the operator, which call these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.hooks.hive_metastore import spark_conf_of
from airflow_hive_opt.operators.arguments import NOT_DEFERRED
from airflow_hive_opt.provider import kubernetes
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    DecoratedOperator,
)
from airflow_hive_opt.provider.applications import standalone
from airflow_hive_opt.provider.applications.deferral import (
    LEAST_INTERVAL,
    deadline,
    ended_in,
    failure_of,
    stop_unless_followed,
)
from airflow_hive_opt.provider.applications.earlier import EarlierApplication, settle
from airflow_hive_opt.provider.applications.following import follow, run, stop_now
from airflow_hive_opt.provider.applications.kinds import CanNotFollow, cluster_of
from airflow_hive_opt.provider.applications.standalone_master import StandaloneMaster
from airflow_hive_opt.provider.attempts import default_root
from airflow_hive_opt.provider.outcome import masked
from airflow_hive_opt.provider.spark_provider import follows_application, looks_for_earlier
from airflow_hive_opt.provider.start_errors import start_errors
from airflow_hive_opt.provider.submission import (
    SUBMIT_CONF,
    Application,
    HandedOver,
    application_name,
    check_submission,
    for_driver,
    plain_uri,
    prepare_environment,
    resumption_key,
)
from airflow_hive_opt.provider.yarn import stop_after
from airflow_hive_opt.triggers.application import ApplicationTrigger

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.applications.cluster import Cluster


class ClusterRun:
    """The application ``own`` of this attempt, or the one of an earlier attempt that it follows.

    ``application`` is the one whose outcome counts.
    """

    def __init__(self, operator: Any, context: Context, job: Job) -> None:
        path = operator.attempt_path(context)
        self._operator, self._path = operator, path
        self._job = for_driver(job, path)
        self.own = self.application = Application(str(path), self._job.token)
        self.handed_over = HandedOver(job.descriptor, job.digest)
        self._defers = operator.deferrable and job.stages != "keys"
        self._cluster: Cluster | None = None
        self._driver = ""
        self._log = operator.log

    def outcome(self, context: Context, spark_submit: Callable[[Any], Any]) -> Outcome:
        """Submits the job by the operator's ``spark_submit``, waits, and reads the outcome.

        Raises ``AirflowException``, and ``TaskDeferred`` to wait in the triggerer.
        """
        operator = self._operator
        given_conf, given_files = operator.conf, operator.py_files
        failure: Exception | None = None
        try:
            self._submit(context, spark_submit)
        except DescriptorError as error:
            raise AirflowException(str(error)) from None
        except (AirflowException, RuntimeError) as error:
            told = kubernetes.explained(error, operator._hook, str(self._path))
            failure = stop_after(operator, told, context["ti"])
        except ValueError as error:
            raise AirflowFailException(str(error)) from None
        finally:
            # OpenLineage may have added its transport's key to conf, which Airflow's page shows
            operator.conf, operator.py_files = given_conf, given_files
        return self.application.outcome_after(self.handed_over, failure)

    def _submit(self, context: Context, spark_submit: Callable[[Any], Any]) -> None:
        from airflow_hive_opt.documents.job import write_job
        from airflow_hive_opt.spark.application.shipping import ship

        operator = self._operator
        operator.external_id_key = key = resumption_key(self._job, context)
        operator._K8S_DRIVER_STATUS_KEY = f"{key}_status"
        job_uri = plain_uri(write_job(self._job, self._path))
        stored = Application.stored(context, key)
        if stored is None or stored.path != self.own.path:
            self.own.prepare()
        with start_errors():
            prepare_environment()
        with TemporaryDirectory(prefix="airflow-hive-opt-") as folder:
            main, package = self._shipped(operator._get_hook(), ship(Path(folder)))
            operator.application, operator.application_args = main, [job_uri]
            operator.py_files = ",".join([package, *filter(None, [operator.py_files])])
            operator.name = application_name(context)
            metastore = spark_conf_of(operator.metastore_conn_id)
            operator.conf = {**SUBMIT_CONF, **metastore, **(operator.conf or {})}
            kind = self._cluster.kind if self._cluster is not None and self._defers else None
            if kind == "yarn":  # older Spark providers have no such attributes
                operator._yarn_track_via_rm_api = True
            elif kind == "kubernetes":
                operator._track_driver_via_k8s_api = True
            asked, is_recorded = operator._durable_is_asked_for, self._cluster is not None
            check_submission(operator, hook := operator._get_hook(), asked, is_recorded)
            if not follows_application(operator, hook):
                operator.durable = asked  # if True, Airflow says it can't
            operator._hook = None  # the submit operator makes a new one, with lineage in its conf
            if not looks_for_earlier(operator, hook):  # else is_done and submit are called
                settle(context, self.own, key, False, self._log)
                self.own.claim(key)
            spark_submit(context)

    def _shipped(self, hook: Any, files: tuple[Path, Path]) -> tuple[str, str]:
        """The URIs of the driver's files, where its machine can read them.

        Finds out who can follow the application. Raises ``ValueError`` and ``DescriptorError``.
        """
        main, package = map(str, files)
        try:
            self._cluster = cluster_of(hook)
        except CanNotFollow as why:
            if self._defers:
                self._log.info(NOT_DEFERRED, why)
            self._defers = False
        if isinstance(self._cluster, StandaloneMaster):
            root = self._operator.descriptor_path or default_root()
            main, package = standalone.shared(files, root)
        return main, package

    def is_done(self, context: Context) -> bool:
        """Whether an earlier attempt's application has done the work; lets no other one go on.

        Raises ``AirflowFailException`` if one may go on, and ``DescriptorError``.
        """
        key, durable = self._operator.external_id_key, self._operator.durable
        if durable and (stored := Application.stored(context, key)) is not None:
            self.application = stored
        if (done := settle(context, self.own, key, durable, self._log)) is not None:
            self.application = done
        return done is not None

    def status(self, ask: Callable[[], str]) -> str:
        """The status of an earlier application, in its cluster's words.

        Its outcome counts, even if the cluster that ``ask`` asks has forgotten it. Raises
        ``DescriptorError`` if the outcome can't be read and the cluster knows of no success: the
        statement may be done, so no other application must start.
        """
        try:
            known = self._status_by_outcome()
        except DescriptorError:
            status = ask()
            operator = self._operator
            if operator.is_job_active(status) or operator.is_job_succeeded(status):
                return status
            raise
        return known or ask()

    def _status_by_outcome(self) -> str | None:
        if not self.application.has_ended():
            return None
        if not self.application.has_finished():
            return "FAILED"
        return "FINISHED" if isinstance(self._cluster, StandaloneMaster) else "SUCCEEDED"

    def submit(self, context: Context, spark_submit: Callable[[Any], Any]) -> Any:
        """Submits the application and stores it for a retry that may resume it; returns its ID.

        The operator's ``spark_submit`` does it, where the cluster accepts that. Raises
        ``AirflowException`` if the task was stopped.
        """
        key, hook = self._operator.external_id_key, self._operator._hook
        self.application = self.own
        self.own.prepare()
        self.own.store(context, key)
        known = None
        if self._cluster is not None:
            known = EarlierApplication.of(self.own, key, self._cluster)
            known.store(context)
        self.own.claim(key)
        self._operator.raise_if_stopped()
        if isinstance(self._cluster, StandaloneMaster):
            id_ = standalone.submit(hook, self._operator.application, self._cluster)
            self._driver = id_
            self._log.info("the master starts the driver %s", id_)
        else:
            id_ = spark_submit(context)
        if known is not None and id_ is not None:
            dataclasses.replace(known, id=id_).store(context)
            if self._operator._is_stopped:  # while the cluster got the request
                assert self._cluster is not None, "only then it is known"
                stop_now(self._cluster, id_, self._log)
                self._operator.raise_if_stopped()
        return id_

    def wait(self, context: Context, id_: str, spark_submit: Callable[[Any, Any], None]) -> None:
        """Waits for the end of the application, here or in the triggerer.

        The operator's ``spark_submit`` does it, where it can. Raises ``AirflowException``, and
        ``TaskDeferred``.
        """
        operator = self._operator
        interval, hook = operator._status_poll_interval, operator._hook
        if self._cluster is not None and self._defers:
            self._log.info("the triggerer waits for %s", id_)
            every = max(float(interval), LEAST_INTERVAL)
            until = deadline(context, operator.execution_timeout)
            cluster = self._cluster
            named = cluster.kind, cluster.addresses
            state = dataclasses.asdict(self.application) | dataclasses.asdict(self.handed_over)
            # Airflow's database keeps this. Other operators render their statement again.
            is_function = isinstance(operator, DecoratedOperator)
            sql = masked(self._job.sql) if is_function else None
            stop_unless_followed(id_, lambda: stop_now(cluster, id_, self._log), context, self._log)
            operator.defer(
                trigger=ApplicationTrigger(*named, id_, every, until),
                method_name="resume",
                kwargs={"submitted": {"sql": sql, **state}},
            )
        if not isinstance(self._cluster, StandaloneMaster):
            spark_submit(id_, context)
            return
        self._driver = id_
        if operator._is_stopped:  # before the driver was known here
            self.stop()
            operator.raise_if_stopped()
        ended = run(follow(self._cluster, id_, interval, None, self._log))
        hook._run_post_submit_commands()
        if (failure := failure_of(ended)) is not None:
            raise failure

    def stop(self) -> bool:
        """Stops the driver on a standalone cluster; ``False`` if there is none."""
        if self._cluster is None or not self._driver:
            return False
        stop_now(self._cluster, self._driver, self._log)
        return True


def outcome_after_wait(operator: Any, event: dict[str, Any], submitted: dict[str, Any]) -> Outcome:
    """The outcome of an application that the triggerer has followed.

    ``submitted`` is what :meth:`ClusterRun.wait` has left for the operator. The statement of a
    decorated function is set again. Raises ``AirflowException``.
    """
    ended = ended_in(event)
    operator.log.info("%s", ended.message)
    operator.sql = submitted["sql"] or operator.sql
    hook = operator._get_hook()
    if standalone.in_cluster_mode(hook) or kubernetes.in_cluster_mode(hook):
        hook._run_post_submit_commands()  # on YARN, the submission has run them
    application = Application(submitted["path"], submitted["token"])
    handed_over = HandedOver(submitted["descriptor"], submitted["digest"])
    return application.outcome_after(handed_over, failure_of(ended))
