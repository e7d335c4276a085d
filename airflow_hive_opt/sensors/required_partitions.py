"""``RequiredPartitionsSensor``: waits for the partitions that match a join's keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from airflow_hive_opt.hooks.hive_metastore import DEFAULT_CONN_ID, HiveMetastoreHook
from airflow_hive_opt.operators.outcome import raise_unless_done
from airflow_hive_opt.operators.statement import StagesName, StatementOperator
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    BaseSensorOperator,
    PokeReturnValue,
)
from airflow_hive_opt.provider.attempts import attempt_token
from airflow_hive_opt.provider.waiting import PollResult, poll_partitions, statement_digest
from airflow_hive_opt.runtime import required
from airflow_hive_opt.runtime.storage import DescriptorError, NothingThereError
from airflow_hive_opt.sensors.deferring import deadline_in, deferrable_by_default, summary_in

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.runtime.required import Required
    from airflow_hive_opt.spark.application.job import Job


class RequiredPartitionsSensor(BaseSensorOperator, StatementOperator):
    """Waits until the metastore has every partition that the small tables' keys require.

    The sensor collects the keys once, on Spark, when it starts. Each poke then makes one metastore
    call for each table, however many partitions it has. If several small tables prune one table,
    the sensor waits for every combination of their keys, because the join may read each of them.
    The log says which partitions are missing.

    :param sql: the statement that will run. (templated)
    :param columns: names of partition columns; wait only for the keys of these columns. Use it if
        some combinations of keys never exist: ``columns=["ds"]`` waits for one partition of each
        day. Default: all columns.
    :param metastore_conn_id: the ``hive_metastore`` connection of the metastore to check, or an
        ``aws`` connection for AWS Glue.
    :param deferrable: wait in the triggerer. Default: ``[operators] default_deferrable``.

    ``poke_interval`` and ``timeout`` are those of Airflow's sensors. For all other arguments, see
    :class:`~airflow_hive_opt.operators.statement.StatementOperator`. Its gates and ``durable`` have
    no effect here.
    """

    stages: ClassVar[StagesName] = "keys"
    template_fields: Sequence[str] = StatementOperator.template_fields
    template_ext: Sequence[str] = StatementOperator.template_ext
    operator_extra_links = ()  # it writes no descriptor
    ui_color = "#e8eef7"

    def __init__(
        self,
        *,
        sql: str,
        columns: Sequence[str] = (),
        metastore_conn_id: str = DEFAULT_CONN_ID,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        # A list has its attempt's token, so no attempt can resume another one's application.
        kwargs["durable"] = False
        super().__init__(sql=sql, metastore_conn_id=metastore_conn_id, **kwargs)
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, not {columns!r}")
        self.columns = tuple(columns)
        self._own_token = uuid4().hex  # if the context has no attempt ID: no older list has it
        self.deferrable = deferrable_by_default() if deferrable is None else deferrable

    def job(self, context: Context) -> Job:
        """See :meth:`StatementOperator.job`."""
        return dataclasses.replace(
            super().job(context), columns=self.columns, token=self._token(context)
        )

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
                str(self.metastore_conn_id),
                self.poke_interval,
                deadline_in(self.timeout),
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
        from airflow_hive_opt.runtime.metastore import MetastoreError

        found = self._required(context)
        with HiveMetastoreHook(str(self.metastore_conn_id)).get_conn() as metastore:
            try:
                result = poll_partitions(metastore, found)
            except MetastoreError as error:
                raise AirflowException(f"connection {self.metastore_conn_id!r}: {error}") from None
        self.log.info("%s", result.message)
        return result

    def _required(self, context: Context) -> Sequence[Required]:
        """The list that an earlier poke of this attempt wrote; else collects the keys now."""
        whose = statement_digest(self.sql, self.parameters), self.columns, self._token(context)
        path = self.attempt_path(context)
        try:
            return required.read(path, *whose)
        except NothingThereError:
            pass
        except DescriptorError as error:
            self.log.info("the keys are collected again: %s", error)
        outcome = self.run(context, self.job(context))
        raise_unless_done(outcome)
        self.log.info("%s", outcome.message)
        try:
            return required.read(path, *whose)
        except DescriptorError as error:
            raise AirflowException(str(error)) from None

    def _token(self, context: Context) -> str:
        """The token that this attempt's list must have."""
        return attempt_token(context) or self._own_token
