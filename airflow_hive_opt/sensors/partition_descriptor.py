"""``PartitionDescriptorSensor``: waits for a whole, verified descriptor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.provider.airflow_compat import BaseSensorOperator, PokeReturnValue
from airflow_hive_opt.provider.waiting import Look, look_for_descriptor, statement_digest
from airflow_hive_opt.sensors.deferring import concluded, deadline_in, deferrable_by_default

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context


class PartitionDescriptorSensor(BaseSensorOperator):
    """Waits until a whole descriptor lies at a URI, say one that another system writes.

    Its XCom is the descriptor's summary, which
    :class:`~airflow_hive_opt.operators.map_join.MapJoinOperator` takes for its ``descriptor``.
    What is there but can't be trusted is not found; the log says why.

    :param uri: a local path or object storage URI. (templated)
    :param sql: with it, only this statement's descriptor will do. (templated)
    :param parameters: the statement's parameters. (templated)
    :param deferrable: wait in the triggerer; default ``[operators] default_deferrable``.

    ``poke_interval``, ``timeout`` and the rest are Airflow's.
    """

    template_fields: Sequence[str] = ("uri", "sql", "parameters")
    template_ext: Sequence[str] = (".sql", ".hql")
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql", "parameters": "json"}
    ui_color = "#e8eef7"

    def __init__(
        self,
        *,
        uri: str,
        sql: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.uri = uri
        self.sql = sql
        self.parameters = parameters
        self.deferrable = deferrable_by_default() if deferrable is None else deferrable

    def execute(self, context: Context) -> Any:
        """Looks once here; what is not there yet is waited for in the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        look = self._look()
        if look.found:
            return look.summary
        from airflow_hive_opt.triggers.partitions import PartitionDescriptorTrigger

        self.defer(
            trigger=PartitionDescriptorTrigger(
                self.uri, self._query_digest(), self.poke_interval, deadline_in(self.timeout)
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """What the trigger saw: the summary, or a time-out."""
        return concluded(event, self.timeout)

    def poke(self, context: Context) -> bool | PokeReturnValue:  # noqa: ARG002
        """One look, in this process."""
        look = self._look()
        return PokeReturnValue(look.found, look.summary)

    def _look(self) -> Look:
        look = look_for_descriptor(self.uri, self._query_digest())
        self.log.info("%s", look.message)
        return look

    def _query_digest(self) -> str | None:
        return None if self.sql is None else statement_digest(self.sql, self.parameters)
