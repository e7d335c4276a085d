"""``RequiredPartitionsSensor``: waits for the partitions that match a join's keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.documents.required_keys import read_keys
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError
from airflow_hive_opt.hooks.hive_metastore import DEFAULT_CONN_ID, HiveMetastoreHook
from airflow_hive_opt.hooks.iceberg_catalog import IcebergCatalogHook
from airflow_hive_opt.metastores.required import TooManyRequiredPartitions
from airflow_hive_opt.operators.arguments import check_switches, given_switches
from airflow_hive_opt.operators.statement import StagesName, StatementOperator
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    BaseHook,
    BaseSensorOperator,
    ObjectStoragePath,
    PokeReturnValue,
)
from airflow_hive_opt.provider.attempts import attempt_token
from airflow_hive_opt.provider.handed_over import check_local_task, check_statement
from airflow_hive_opt.provider.lake_clients import delta_tables, in_words
from airflow_hive_opt.provider.outcome import raise_unless_done
from airflow_hive_opt.provider.waiting import (
    PollResult,
    check_connections,
    poll_partitions,
    statement_digest,
)
from airflow_hive_opt.sensors.deferring import deadline_in, is_deferrable, summary_in
from airflow_hive_opt.statement.lake_formats import DELTA, ICEBERG

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job
    from airflow_hive_opt.metastores.lakes import LakeClient
    from airflow_hive_opt.metastores.required import Required
    from airflow_hive_opt.provider.airflow_compat import Context


# Those of StatementOperator that act on a descriptor, on rows or on a run of the statement.
_OF_THE_RUN = (
    "durable",
    "max_bytes",
    "max_partitions",
    "on_empty",
    "on_no_prune",
    "partition_keys_of",
    "show_rows",
)
_SWITCHES = ("python_functions",)


class RequiredPartitionsSensor(BaseSensorOperator, StatementOperator):
    """Waits until every partition that the small tables' keys require exists.

    With the output of the statement's local task as ``descriptor``, the sensor takes the keys that
    the local task has read, and starts no Spark. Otherwise it collects the keys once, on Spark,
    when it starts. Each poke then makes one metastore call for each table, however many partitions
    it has. It reads the metadata of an Iceberg table with PyIceberg, if the table has changed since
    the last poke, and the new commits of a Delta table with ``deltalake``. If several small tables
    prune one table, the sensor waits for every combination of their keys, because the join may read
    each of them. The log says which partitions are missing. The sensor does not wait for partitions
    of Hudi tables.

    :param sql: the statement that will run. (templated)
    :param descriptor: the output of the statement's
        :class:`~airflow_hive_opt.operators.local_task.LocalTaskOperator`. Default: none; then the
        sensor collects the keys itself. It also does so if the local task has left no keys for it.
        (templated)
    :param columns: names of partition columns; wait only for the keys of these columns. Use it if
        some combinations of keys never exist: ``columns=["ds"]`` waits for one partition of each
        day. Default: all columns.
    :param python_functions: if true, also wait for keys that depend on Python functions. Default:
        false. (templated)
    :param metastore_conn_id: the ``hive_metastore`` connection of the metastore to check, or an
        ``aws`` connection for AWS Glue. Default: ``metastore_default``, or none if
        ``catalog_conn_id`` is given.
    :param catalog_conn_id: the ``iceberg`` connection of the catalog that has the statement's
        Iceberg tables. Default: none; then a statement that requires partitions of such a table
        fails. (templated)
    :param storage_conn_id: the connection to the storage of the statement's Delta tables. Default:
        none; then ``deltalake`` finds credentials as it does without Airflow. (templated)
    :param deferrable: wait in the triggerer. Default: ``[operators] default_deferrable``.

    ``poke_interval`` and ``timeout`` are those of Airflow's sensors. For all other arguments, see
    :class:`~airflow_hive_opt.operators.statement.StatementOperator`. The sensor does not run the
    statement. So it raises ``TypeError`` for gates, ``show_rows``, ``partition_keys_of`` and
    ``durable``, and for arguments that have no effect with ``deferrable=True``, such as ``mode``.
    """

    stages: ClassVar[StagesName] = "keys"
    template_fields: Sequence[str] = (
        *StatementOperator.template_fields,
        "catalog_conn_id",
        "descriptor",
        "storage_conn_id",
        *_SWITCHES,
    )
    template_ext: Sequence[str] = StatementOperator.template_ext
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **StatementOperator.template_fields_renderers,
        "descriptor": "json",
    }
    operator_extra_links = ()  # it writes no descriptor
    ui_color = "#e8eef7"

    def __init__(
        self,
        *,
        sql: str,
        descriptor: Any = None,
        columns: Sequence[str] = (),
        python_functions: bool | str | None = None,
        metastore_conn_id: str | None = None,
        catalog_conn_id: str | None = None,
        storage_conn_id: str | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if named := [name for name in _OF_THE_RUN if name in kwargs]:
            raise TypeError(
                f"{', '.join(named)} can't be set: the sensor does not run the statement. Set it "
                "at the operator that does"
            )
        deferred = is_deferrable(deferrable, kwargs)
        # A list has its attempt's token, so no attempt can resume another one's application.
        kwargs["durable"] = False
        if metastore_conn_id is None and catalog_conn_id is None:
            metastore_conn_id = DEFAULT_CONN_ID
        super().__init__(sql=sql, metastore_conn_id=metastore_conn_id, **kwargs)
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, not {columns!r}")
        self.descriptor = descriptor
        self._has_local_task = descriptor is not None  # a task without an output renders to None
        self.columns = tuple(columns)
        self.python_functions = python_functions
        check_switches(given_switches(self, _SWITCHES))
        self.catalog_conn_id = catalog_conn_id
        self.storage_conn_id = storage_conn_id
        self._own_token = uuid4().hex  # if the context has no attempt ID: no older list has it
        self._lakes: dict[str, LakeClient] = {}  # keep what a poke has read for the next one
        self.deferrable = deferred

    def job(self, context: Context, **fields: Any) -> Job:
        """See :meth:`StatementOperator.job`."""
        switches, token = given_switches(self, _SWITCHES), self._token(context)
        return super().job(context, columns=self.columns, token=token, switches=switches, **fields)

    def execute(self, context: Context) -> Any:
        """Collects the keys and checks once; then waits in the triggerer if ``deferrable``."""
        if not self.deferrable:
            return BaseSensorOperator.execute(self, context)
        result = self._poll(context)
        if result.found:
            return result.summary
        from airflow_hive_opt.triggers.partitions import RequiredPartitionsTrigger

        self.defer(
            trigger=RequiredPartitionsTrigger(
                str(self.attempt_path(context)),
                statement_digest(self.sql, self.parameters),
                self.columns,
                self._token(context),
                self.metastore_conn_id,
                self.poke_interval,
                deadline_in(self.timeout),
                self.catalog_conn_id,
                self.storage_conn_id,
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Returns the summary in the trigger's event; raises ``AirflowSensorTimeout``."""
        return summary_in(event, self.timeout)

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Checks once, in this process."""
        result = self._poll(context)
        return PokeReturnValue(result.found, result.summary)

    def _poll(self, context: Context) -> PollResult:
        from airflow_hive_opt.metastores.lakes import CatalogError
        from airflow_hive_opt.metastores.metastore import MetastoreError

        found = self._required(context)
        check_connections(found, self.metastore_conn_id, self.catalog_conn_id)
        with ExitStack() as clients:
            metastore = None
            if self.metastore_conn_id is not None and any(not each.provider for each in found):
                hook = HiveMetastoreHook(self.metastore_conn_id)
                metastore = clients.enter_context(hook.get_conn())
            for provider in {each.provider for each in found if each.provider}:
                if provider not in self._lakes:
                    self._lakes[provider] = self._client(provider)
                clients.callback(self._lakes[provider].close)
            try:
                result = poll_partitions(metastore, found, self._lakes)
            except MetastoreError as error:
                raise AirflowException(f"connection {self.metastore_conn_id!r}: {error}") from None
            except CatalogError as error:
                raise AirflowException(
                    in_words(error, self.catalog_conn_id, self.storage_conn_id)
                ) from None
        self.log.info("%s", result.message)
        return result

    def _client(self, provider: str) -> LakeClient:
        if provider == ICEBERG:
            assert self.catalog_conn_id is not None, "check_connections"
            return IcebergCatalogHook(self.catalog_conn_id).get_conn()
        assert provider == DELTA, "a list has no tables of formats without a client"
        named = self.storage_conn_id
        return delta_tables(None if named is None else BaseHook.get_connection(named))

    def _required(self, context: Context) -> Sequence[Required]:
        """The list that an earlier poke of this attempt wrote; else makes it now."""
        digest = statement_digest(self.sql, self.parameters)
        keys_of = None
        if self._has_local_task:
            keys_of = check_local_task(self.descriptor, "nothing is waited for")
            check_statement(keys_of, digest)
        whose = digest, self.columns, self._token(context)
        path = self.attempt_path(context)
        try:
            return required.read(path, *whose)
        except NothingThereError:
            pass
        except DescriptorError as error:
            self.log.info("the list of required partitions is made again: %s", error)
        try:
            if keys_of is None or not self._take_keys(
                keys_of, RequiredPartitions(*whose, ()), path
            ):
                self._collect_keys(context)
            return required.read(path, *whose)
        except DescriptorError as error:
            raise AirflowException(str(error)) from None

    def _take_keys(
        self, output: Mapping[str, Any], wanted: RequiredPartitions, path: ObjectStoragePath
    ) -> bool:
        """Writes the list from the local task's keys; returns whether there are any."""
        try:
            uri = ObjectStoragePath(output["uri"])
            found = read_keys(uri, wanted.query_digest, output["digest"])
        except (DescriptorError, ValueError, ImportError) as error:
            self.log.info(
                "the keys are read on Spark, because those of the local task can't be read: %s",
                error,
            )
            return False
        if not found.has_columns(self.columns):
            self.log.info("the keys are read on Spark, because columns names a column without keys")
            return False
        for note in found.notes:
            self.log.info("%s", plain(note))
        try:
            wanted = dataclasses.replace(wanted, tables=tuple(found.required(self.columns)))
        except TooManyRequiredPartitions as error:
            raise AirflowFailException(str(error)) from None
        required.write(wanted, path)
        self.log.info("%s; the local task has read the keys", plain(wanted.in_words))
        return True

    def _collect_keys(self, context: Context) -> None:
        """Writes the list from keys that a Spark application reads now."""
        outcome = self.run(context, self.job(context))
        raise_unless_done(self.log, outcome)
        self.log.info("%s", outcome.message)

    def _token(self, context: Context) -> str:
        """The token that this attempt's list must have."""
        token = attempt_token(context) or self._own_token
        # a local task that was cleared and has run again may have other keys
        return f"{token} {self.descriptor['digest']}" if self._has_local_task else token
