"""``MapJoinPruneTaskGroup``: the two stages as two tasks, with room for sensors between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_hive_opt.operators.local_task import SWITCHES, LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.provider.airflow_compat import TaskGroup, XComArg

_OF_LOCAL_TASK = (
    *("max_keys", "max_key_bytes", "hold_snapshots", "local_task", "storage_conn_id"),
    *("prune_only", "dry", "for_other_runner"),
    *SWITCHES,
)
_OF_MAP_JOIN = ("show_rows",)


class MapJoinPruneTaskGroup(TaskGroup):
    """A local task and the map join that reads its descriptor.

    :param group_id: ID of the group. Its tasks are ``local_task`` and ``map_join``.
    :param sql: the statement; see
        :class:`~airflow_hive_opt.operators.map_join_prune.MapJoinPruneOperator`. All other
        arguments of that operator may be given too and apply to both tasks. Exceptions are
        those of :class:`~airflow_hive_opt.operators.local_task.LocalTaskOperator`, which apply to
        the local task, and ``show_rows``, which applies to the map join.
    :param local_task_args: arguments for the local task only, for example ``conn_id`` or ``pool``.
    :param map_join_args: arguments for the map join only.
    :param group_args: arguments of Airflow's ``TaskGroup``.

    A sensor between the two tasks can wait for the partitions that the keys require::

        sales = MapJoinPruneTaskGroup("sales", sql="sales.sql")
        wait = RequiredPartitionsSensor(
            task_id="wait", sql="sales.sql", descriptor=sales.local_task.output
        )
        wait >> sales.map_join
    """

    def __init__(
        self,
        group_id: str,
        *,
        sql: str,
        local_task_args: Mapping[str, Any] | None = None,
        map_join_args: Mapping[str, Any] | None = None,
        group_args: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(group_id, **(group_args or {}))
        keys_only, join_only = (
            {name: arguments.pop(name) for name in names if name in arguments}
            for names in (_OF_LOCAL_TASK, _OF_MAP_JOIN)
        )
        with self:
            self.local_task = LocalTaskOperator(
                task_id="local_task",
                sql=sql,
                **{**arguments, **keys_only, **(local_task_args or {})},
            )
            self.map_join = MapJoinOperator(
                task_id="map_join",
                sql=sql,
                descriptor=self.local_task.output,
                **{**arguments, **join_only, **(map_join_args or {})},
            )

    @property
    def output(self) -> XComArg:
        """The map join's summary, for downstream tasks."""
        return self.map_join.output
