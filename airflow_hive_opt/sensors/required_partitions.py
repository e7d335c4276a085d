"""``RequiredPartitionsSensor``: waits for the partitions that a join's keys call for."""

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
from airflow_hive_opt.provider.waiting import Look, look_for_partitions, statement_digest
from airflow_hive_opt.runtime import required
from airflow_hive_opt.runtime.storage import DescriptorError, NothingThereError
from airflow_hive_opt.sensors.deferring import concluded, deadline_in, deferrable_by_default

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.runtime.required import Required
    from airflow_hive_opt.spark.application.job import Job


class RequiredPartitionsSensor(BaseSensorOperator, StatementOperator):
    """Waits until every partition that the small tables' keys call for is in the metastore.

    The keys are collected once, on Spark, when the sensor starts; from then on each poke is one
    metastore call a table, whatever the number of partitions. Where several small tables prune one
    table, every combination of their keys is waited for, since the join may read each of them. The
    log says what is missing.

    :param sql: the statement that is to run. (templated)
    :param columns: wait for the keys of these partition columns alone: where some combinations
        never come, the days may do, and ``columns=["ds"]`` asks for a partition of each.
    :param metastore_conn_id: the ``hive_metastore`` connection that is asked.
    :param deferrable: wait in the triggerer; default ``[operators] default_deferrable``.

    ``poke_interval``, ``timeout`` and the rest are Airflow's; further arguments are
    :class:`~airflow_hive_opt.operators.statement.StatementOperator`'s, whose gates do nothing here,
    nor does ``durable``.
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
        # A list bears the token of its attempt, so none resumes another's application.
        kwargs["durable"] = False
        super().__init__(sql=sql, metastore_conn_id=metastore_conn_id, **kwargs)
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, not {columns!r}")
        self.columns = tuple(columns)
        self._own_token = uuid4().hex  # for contexts that name no attempt: no older list has it
        self.deferrable = deferrable_by_default() if deferrable is None else deferrable

    def job(self, context: Context) -> Job:
        """See :meth:`StatementOperator.job`."""
        return dataclasses.replace(
            super().job(context), columns=self.columns, token=self._token(context)
        )

    def execute(self, context: Context) -> Any:
        """Collects the keys and looks once here; the rest is waited for in the triggerer."""
        if not self.deferrable:
            return BaseSensorOperator.execute(self, context)
        look = self._look(context)
        if look.found:
            return look.summary
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
        """What the trigger saw: how many partitions there are, or a time-out with the missing."""
        return concluded(event, self.timeout)

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """One look, in this process."""
        look = self._look(context)
        return PokeReturnValue(look.found, look.summary)

    def _look(self, context: Context) -> Look:
        from airflow_hive_opt.runtime.metastore import MetastoreError

        found = self._required(context)
        with HiveMetastoreHook(str(self.metastore_conn_id)).get_conn() as metastore:
            try:
                look = look_for_partitions(metastore, found)
            except MetastoreError as error:
                raise AirflowException(f"connection {self.metastore_conn_id!r}: {error}") from None
        self.log.info("%s", look.message)
        return look

    def _required(self, context: Context) -> Sequence[Required]:
        """What an earlier poke of this attempt has written down, or else is collected now."""
        whose = statement_digest(self.sql, self.parameters), self.columns, self._token(context)
        path = self.attempt_path(context)
        try:
            return required.read(path, *whose)
        except NothingThereError:
            pass
        except DescriptorError as error:
            self.log.info("the keys are collected anew: %s", error)
        outcome = self.run(context, self.job(context))
        raise_unless_done(outcome)
        self.log.info("%s", outcome.message)
        try:
            return required.read(path, *whose)
        except DescriptorError as error:
            raise AirflowException(str(error)) from None

    def _token(self, context: Context) -> str:
        """What this attempt's list must bear."""
        return attempt_token(context) or self._own_token
