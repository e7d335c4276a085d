"""The base of the three operators: their arguments, and how they run a job on Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.hooks.hive_metastore import spark_conf_of
from airflow_hive_opt.links.pages import DescriptorLink, ExplainLink
from airflow_hive_opt.links.spark_ui import SparkUILink
from airflow_hive_opt.operators.arguments import (
    NOT_DEFERRED,
    check_parsed,
    check_rendered,
    is_deferrable,
    rows_to_show,
)
from airflow_hive_opt.provider import asset_events
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
    mask_secret,
    store_link,
)
from airflow_hive_opt.provider.attempts import checked_attempt_path, default_root
from airflow_hive_opt.provider.connections import Deployment, deployment_of
from airflow_hive_opt.provider.embedded import Prepared, embedded_settings, run_embedded
from airflow_hive_opt.provider.outcome import log_outcome, masked, publish, raise_unless_done
from airflow_hive_opt.provider.spark_provider import SparkSubmitOperator, check_submit_arguments
from airflow_hive_opt.provider.submission import application_name
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.arguments import check_whole_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.provider.airflow_compat import BaseOperatorLink, Context

StagesName: TypeAlias = Literal["keys", "local task", "map join", "both"]
_OWN = ("application", "application_args", "name")
_SUBMIT_FIELDS = tuple(name for name in SparkSubmitOperator.template_fields if name not in _OWN)


class StatementOperator(SparkSubmitOperator):
    """Runs one or both stages of a statement: in this process, or submitted to a cluster.

    :param sql: a SELECT, INSERT or CREATE TABLE AS in HiveQL or Spark SQL, or the name of a
        ``.sql`` or ``.hql`` file. (templated)
    :param parameters: values for the ``:name`` markers in the statement. (templated)
    :param conn_id: where the statement runs. With a ``spark`` connection to a ``local`` master, it
        runs in this process. With any other ``spark`` connection, it is submitted to that cluster,
        with every argument of ``SparkSubmitOperator``. With a ``spark_connect`` connection, it runs
        in a new session on that server. Default: in this process, on ``[hive_opt] warehouse``.
    :param metastore_conn_id: a ``hive_metastore`` or ``aws`` connection, whose tables Spark uses.
        Default: that of ``conf`` or of the cluster. A Spark Connect server always uses its own.
    :param conf: Spark settings. (templated)
    :param hive_conf: Hive settings. ``hive.optimize.correlation`` is ``auto`` by default, which
        rewrites correlated queries if that is expected to be faster. (templated)
    :param descriptor_path: folder or object storage URI below which each attempt writes. A
        cluster's driver needs access too. Default: ``[hive_opt] descriptor_path``. (templated)
    :param show_rows: how many rows of a SELECT the log shows. With 0, the SELECT is planned but
        does not run. Default: ``[hive_opt] show_rows``, else 5.
    :param max_partitions: fail before the join if the pruned scans keep more partitions in total.
    :param max_bytes: fail before the join if the kept partitions have more bytes in total, or if a
        size is unknown. The sizes are the metastore's, else those of the files.
    :param on_empty: what to do if no partition of a table matches the keys: ``run`` the statement
        (default), ``skip`` the task, or ``fail``.
    :param on_no_prune: if no scan can be pruned: ``run`` (default), ``warn`` or ``fail``.
    :param partition_keys_of: a pruned table. The partitions of this table that the run reads become
        keys of the asset events of this task's ``outlets``, one event for each key. Events with
        keys start only DAGs with a partitioned schedule. Needs Airflow 3.3.
    :param deferrable: wait in the triggerer, without a worker's slot: for an application in cluster
        mode, or for a statement that writes on a Spark Connect server. Elsewhere the task waits in
        its worker, and the log says why. Default: ``[operators] default_deferrable``.
    """

    stages: ClassVar[StagesName]
    template_fields: Sequence[str] = (
        "sql",
        "statement",
        "parameters",
        "hive_conf",
        "descriptor_path",
        *_SUBMIT_FIELDS,
    )
    template_ext: Sequence[str] = (".sql", ".hql")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "sql": "sql",
        "statement": "sql",
        "parameters": "json",
        "conf": "json",
        "hive_conf": "json",
    }
    operator_extra_links: Collection[BaseOperatorLink] = (
        DescriptorLink(),
        ExplainLink(),
        SparkUILink(),
    )
    ui_color = "#f5e6b3"
    overwrite_rtif_after_execution = True  # "Rendered Templates" shows the statement that ran

    def __init__(
        self,
        *,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        conn_id: str | None = None,
        metastore_conn_id: str | None = None,
        conf: Mapping[str, Any] | None = None,
        hive_conf: Mapping[str, Any] | None = None,
        descriptor_path: str | None = None,
        show_rows: int | None = None,
        max_partitions: int | None = None,
        max_bytes: int | None = None,
        on_empty: str = "run",
        on_no_prune: str = "run",
        partition_keys_of: str | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if named := sorted({"application", "application_args"} & kwargs.keys()):
            raise TypeError(f"{', '.join(named)} can't be set: the operator sets it itself")
        check_parsed(sql, parameters=parameters, conf=conf, hive_conf=hive_conf)
        if show_rows is not None:
            check_whole_number("show_rows", show_rows)
        asset_events.check_partition_keys_of(partition_keys_of)
        deferred = is_deferrable(deferrable)
        super().__init__(conn_id=conn_id or "", **check_submit_arguments(kwargs))
        Gates(max_partitions, max_bytes, on_empty, on_no_prune)  # raises for invalid values now
        self.sql = sql
        self.statement: str | None = None
        self.parameters = parameters
        self.conn_id = conn_id
        self.metastore_conn_id = metastore_conn_id
        self.conf: Any = conf
        self.hive_conf = hive_conf
        self.descriptor_path = descriptor_path
        self.show_rows = show_rows
        self.max_partitions = max_partitions
        self.max_bytes = max_bytes
        self.on_empty = on_empty
        self.on_no_prune = on_no_prune
        self.partition_keys_of = partition_keys_of
        self.deferrable = deferred
        self.summary: Mapping[str, Any] | None = None
        """The run's result, for the links; also set if a gate then stopped the run."""
        self._deployment: Deployment | None = None
        self._interrupt: Callable[[], None] | None = None
        self._is_stopped = False
        self._on_cluster: Any = None  # the ClusterRun, once there is one
        self._durable_is_asked_for = kwargs.get("durable") is True

    def execute(self, context: Context) -> Any:
        """Runs the job and returns the summary for XCom."""
        return self.finish(context, self.run(context, self.job(context)))

    def resume(self, context: Context, event: dict[str, Any], submitted: dict[str, Any]) -> Any:
        """Goes on once the triggerer has followed the application to its end."""
        from airflow_hive_opt.provider.applications.cluster_run import outcome_after_wait

        mask_secret(dict(self.parameters or {}))
        return self.finish(context, outcome_after_wait(self, event, submitted))

    def resume_statement(
        self, context: Context, event: dict[str, Any], begun: dict[str, Any]
    ) -> Any:
        """Goes on once the triggerer has followed the statement on a Spark Connect server."""
        from airflow_hive_opt.provider.connect_deferral import connected, outcome_after_wait

        mask_secret(dict(self.parameters or {}))
        self._deployment = place = deployment_of(self.conn_id)
        with connected(self, context, place) as run:
            outcome = outcome_after_wait(self, run, event, begun)
        return self.execute(context) if outcome is None else self.finish(context, outcome)

    def finish(self, context: Context, outcome: Outcome) -> Any:
        """Publishes the outcome and returns the summary; raises what the outcome asks for."""
        self.summary = outcome.summary
        publish(self.log, context["ti"], outcome, decided=self.stages != "map join")
        raise_unless_done(self.log, outcome)
        keys = asset_events.partition_keys(outcome.summary or {}, self.partition_keys_of, self.log)
        summary = self.summary_of(outcome)  # the log's last line says which partitions were kept
        asset_events.extend(context, self.outlets, summary, keys)
        return summary

    def job(self, context: Context, **fields: Any) -> Job:
        """The attempt's work; only this method turns arguments into a job.

        ``fields`` are further fields of the job, which a subclass sets.
        """
        from airflow_hive_opt.documents.job import Job, Stages
        from airflow_hive_opt.provider.key_indexes import index_path

        check_rendered(
            self.sql, parameters=self.parameters, conf=self.conf, hive_conf=self.hive_conf
        )
        mask_secret(dict(self.parameters or {}))  # masks those with names of secrets
        path, show_rows = str(self.attempt_path(context)), rows_to_show(self.show_rows)
        try:
            return Job(
                sql=self.sql,
                path=path,
                stages=Stages(fields.pop("stages", self.stages)),
                parameters=dict(self.parameters or {}),
                hive_conf=dict(self.hive_conf or {}),
                show_rows=show_rows,
                gates=self.gates(),
                index_path=index_path(),
                **fields,
            )
        except ValueError as error:
            raise without_stack(AirflowFailException(masked(str(error)))) from None

    def gates(self) -> Gates:
        """The conditions on the descriptor before the join runs."""
        return Gates(self.max_partitions, self.max_bytes, self.on_empty, self.on_no_prune)

    def run(self, context: Context, job: Job) -> Outcome:
        """Runs the job in this process, on a cluster or over Spark Connect, by ``conn_id``."""
        from airflow_hive_opt.documents.job import Outcome

        self._deployment = place = deployment_of(self.conn_id)
        self.raise_if_stopped()
        if place.kind == "connect":
            from airflow_hive_opt.provider.connect_deferral import outcome_over_connect

            return outcome_over_connect(self, context, job, place)
        if place.kind == "embedded" and self.deferrable and job.stages != "keys":
            self.log.info(NOT_DEFERRED, "Spark runs in the worker")
        if place.kind == "embedded":
            return self._run_here(context, job, place)
        known = self.prepared(context, job, place)(None)
        return known if isinstance(known, Outcome) else self._run_on_cluster(context, known)

    def prepared(self, context: Context, job: Job, place: Deployment) -> Prepared:  # noqa: ARG002
        """Starts work that needs no Spark, and returns a function that waits for the job."""
        return lambda _: job

    def summary_of(self, outcome: Outcome) -> dict[str, Any]:
        """Logs the outcome and returns the summary."""
        self.statement = outcome.statement
        summary = dict(outcome.summary or {})
        log_outcome(self.log, outcome)
        return summary

    def on_kill(self) -> None:
        """Stops this task's Spark, or its work on a Spark Connect server."""
        self.log.info("stopping Spark")
        self._is_stopped = True  # Airflow's handler of SIGTERM only calls this: the task goes on
        kind = self._deployment and self._deployment.kind
        if kind == "submitted":
            if self._on_cluster is not None and self._on_cluster.stop():
                return
            # Without a hook, nothing is submitted. A new one would ask Airflow for the connection,
            # and wait for ever if the signal came in the middle of another request.
            if self._hook is not None:
                super().on_kill()
        elif self._interrupt is not None:
            self._interrupt()
        elif kind == "embedded":
            from airflow_hive_opt.spark.session.session import kill_spark

            kill_spark()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:  # noqa: ARG002
        """The lineage for the OpenLineage provider, if it is installed."""
        from airflow_hive_opt.provider.lineage import lineage_of, namespace_of

        namespace = namespace_of({**(self.conf or {}), **spark_conf_of(self.metastore_conn_id)})
        return lineage_of(self.sql, self.summary, self.statement is not None, namespace)

    def attempt_path(self, context: Context) -> ObjectStoragePath:
        """The path that this attempt writes to."""
        return checked_attempt_path(self.descriptor_path or default_root(), context)

    def _run_here(self, context: Context, job: Job, place: Deployment) -> Outcome:
        from airflow_hive_opt.documents.job import Outcome
        from airflow_hive_opt.provider.embedded_attempt import EmbeddedAttempt

        def started(session: SparkSession | None, interrupt: Callable[[], None]) -> None:
            self._interrupt = interrupt
            self.raise_if_stopped()  # while Spark started, there was nothing to stop
            if session is not None:
                store_link(context, SparkUILink(), session.sparkContext.uiWebUrl)

        settings = embedded_settings(place.address, self.metastore_conn_id, self.conf or {})
        attempt = EmbeddedAttempt.claimed(job, context, settings)
        if attempt.done is not None:
            return attempt.done
        prepared = self.prepared(context, attempt.job, place)
        known = None if job.stages == "both" else prepared(None)  # with "both", Spark starts now
        if isinstance(known, Outcome):
            return known
        ready = prepared if known is None else lambda _: known

        def tell(outcome: Outcome) -> None:
            attempt.tell(outcome, was_stopped=self._is_stopped)

        try:
            return run_embedded(application_name(context), settings, ready, started, tell)
        finally:
            self._interrupt = None

    def _run_on_cluster(self, context: Context, job: Job) -> Outcome:
        from airflow_hive_opt.provider.applications.cluster_run import ClusterRun

        self._on_cluster = run = ClusterRun(self, context, job)
        return run.outcome(context, super().execute)

    def _get_hook(self) -> Any:
        from airflow_hive_opt.provider import yarn
        from airflow_hive_opt.provider.kubernetes import with_named_driver_pod

        hook = with_named_driver_pod(super()._get_hook())
        if self._on_cluster is not None:  # a submission, not the end of one
            yarn.prepare_kill(hook)
            self.raise_if_stopped()
        return hook

    def raise_if_stopped(self) -> None:
        """Raises ``AirflowException`` after ``on_kill``, which may have had nothing to stop yet."""
        if self._is_stopped:
            message = "the task was stopped, so it starts nothing on Spark"
            raise without_stack(AirflowException(message))

    def execute_resumable(self, context: Context) -> Any:
        """Follows an earlier attempt's application if there is one, else submits a new one."""
        if self._on_cluster.is_done(context):
            return None
        return super().execute_resumable(context)

    def get_job_status(self, external_id: Any, context: Context) -> str:
        """The earlier application's status: its outcome counts even if its cluster forgot it."""
        ask = super().get_job_status
        return str(self._on_cluster.status(lambda: str(ask(external_id, context))))

    def submit_job(self, context: Context) -> str | None:
        """Submits the application and stores it for a retry that may resume it."""
        id_: str | None = self._on_cluster.submit(context, super().submit_job)
        return id_

    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Waits in the triggerer if the task is deferrable, else in this process."""
        self._on_cluster.wait(context, external_id, super().poll_until_complete)
