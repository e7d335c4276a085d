"""``PartitionDescriptorSensor``: waits for a complete, verified descriptor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.provider.airflow_compat import BaseSensorOperator, PokeReturnValue
from airflow_hive_opt.provider.waiting import PollResult, poll_descriptor, statement_digest
from airflow_hive_opt.sensors.deferring import deadline_in, is_deferrable, summary_in

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context


class PartitionDescriptorSensor(BaseSensorOperator):
    """Waits until a complete descriptor is at a URI, for example one that another system writes.

    Returns the descriptor's summary as XCom.
    :class:`~airflow_hive_opt.operators.map_join.MapJoinOperator` accepts it as its ``descriptor``.
    A descriptor that fails verification does not count, and the log says why.

    :param uri: local path or object storage URI of the descriptor. (templated)
    :param sql: wait for the descriptor of this statement. Default: any statement. (templated)
    :param parameters: the statement's parameters. (templated)
    :param deferrable: wait in the triggerer. Default: ``[operators] default_deferrable``.

    ``poke_interval``, ``timeout`` and all other arguments are those of Airflow's sensors. Raises
    ``ValueError`` for ``parameters`` without ``sql``, and ``TypeError`` for arguments that have no
    effect with ``deferrable=True``, such as ``mode``.
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
        if parameters is not None and sql is None:
            raise ValueError("parameters are those of a statement: set sql too")
        deferred = is_deferrable(deferrable, kwargs)
        super().__init__(**kwargs)
        self.uri = uri
        self.sql = sql
        self.parameters = parameters
        self.deferrable = deferred

    def execute(self, context: Context) -> Any:
        """Checks once; then waits in the triggerer if ``deferrable`` is true."""
        if not self.deferrable:
            return super().execute(context)
        result = self._poll()
        if result.found:
            return result.summary
        from airflow_hive_opt.triggers.partitions import PartitionDescriptorTrigger

        self.defer(
            trigger=PartitionDescriptorTrigger(
                self.uri, self._query_digest(), self.poke_interval, deadline_in(self.timeout)
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Returns the summary in the trigger's event; raises ``AirflowSensorTimeout``."""
        return summary_in(event, self.timeout)

    def poke(self, context: Context) -> bool | PokeReturnValue:  # noqa: ARG002
        """Checks once, in this process."""
        result = self._poll()
        return PokeReturnValue(result.found, result.summary)

    def _poll(self) -> PollResult:
        result = poll_descriptor(self.uri, self._query_digest())
        self.log.info("%s", result.message)
        return result

    def _query_digest(self) -> str | None:
        return None if self.sql is None else statement_digest(self.sql, self.parameters)
