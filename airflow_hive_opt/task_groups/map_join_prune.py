"""``MapJoinPruneTaskGroup``: the two stages as two tasks, with room for sensors between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_hive_opt.operators.local_task import SWITCHES, LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.provider.airflow_compat import TaskGroup, XComArg

_OF_LOCAL_TASK = (
    *("max_keys", "max_key_bytes", "hold_snapshots", "key_sets", "local_task", "storage_conn_id"),
    *("prune_only", "dry", "for_other_runner"),
    *SWITCHES,
)
_OF_MAP_JOIN = ("show_rows",)
_GATES = ("max_partitions", "max_bytes", "on_empty", "on_no_prune")


class MapJoinPruneTaskGroup(TaskGroup):
    """A local task and the map join that reads its descriptor, for one statement or several.

    :param group_id: ID of the group. Its tasks are ``local_task`` and ``map_join``.
    :param sql: the statement; see
        :class:`~airflow_hive_opt.operators.map_join_prune.MapJoinPruneOperator`. All other
        arguments of that operator may be given too and apply to both tasks. Exceptions are
        those of :class:`~airflow_hive_opt.operators.local_task.LocalTaskOperator`, which apply to
        the local task, and ``show_rows``, which applies to the map join. For several statements, a
        dictionary of names and statements: the tasks of ``returns`` are then
        ``local_task_returns`` and ``map_join_returns``.
    :param local_task_args: arguments for the local tasks only, for example ``conn_id`` or ``pool``.
    :param map_join_args: arguments for the map joins only.
    :param group_args: arguments of Airflow's ``TaskGroup``.

    A sensor between the two tasks can wait for the partitions that the keys require::

        sales = MapJoinPruneTaskGroup("sales", sql="sales.sql")
        wait = RequiredPartitionsSensor(
            task_id="wait", sql="sales.sql", descriptor=sales.local_task.output
        )
        wait >> sales.map_join

    Several statements share a key set, whose name is the group's ID unless ``key_sets`` gives
    another one. So that each key query runs once, the local task of the first statement runs before
    the others. No gate of its own may skip those: only the map joins check ``max_partitions``,
    ``max_bytes``, ``on_empty`` and ``on_no_prune``. ``local_tasks`` and ``map_joins`` have the
    tasks by the statements' names.
    """

    def __init__(
        self,
        group_id: str,
        *,
        sql: str | Mapping[str, str],
        local_task_args: Mapping[str, Any] | None = None,
        map_join_args: Mapping[str, Any] | None = None,
        group_args: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(group_id, **(group_args or {}))
        join_only = _taken_out(arguments, _OF_MAP_JOIN)
        if isinstance(sql, Mapping):
            if not sql:
                raise ValueError("sql must have at least one statement, not {}")
            arguments.setdefault("key_sets", self.group_id)
            join_only |= _taken_out(arguments, _GATES)
        keys_only = _taken_out(arguments, _OF_LOCAL_TASK)
        self.local_tasks: dict[str, LocalTaskOperator] = {}
        self.map_joins: dict[str, MapJoinOperator] = {}
        statements = sql if isinstance(sql, Mapping) else {"": sql}
        with self:
            for name, statement in statements.items():
                suffix = f"_{name}" if name else ""
                self.local_tasks[name] = LocalTaskOperator(
                    task_id=f"local_task{suffix}",
                    sql=statement,
                    **{**arguments, **keys_only, **(local_task_args or {})},
                )
                self.map_joins[name] = MapJoinOperator(
                    task_id=f"map_join{suffix}",
                    sql=statement,
                    descriptor=self.local_tasks[name].output,
                    **{**arguments, **join_only, **(map_join_args or {})},
                )
        first, *others = self.local_tasks.values()
        for other in others:
            first >> other

    @property
    def local_task(self) -> LocalTaskOperator:
        """The first statement's local task."""
        return next(iter(self.local_tasks.values()))

    @property
    def map_join(self) -> MapJoinOperator:
        """The first statement's map join."""
        return next(iter(self.map_joins.values()))

    @property
    def output(self) -> XComArg:
        """The first statement's summary, for downstream tasks."""
        return self.map_join.output


def _taken_out(arguments: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Those of the arguments that have these names, which ``arguments`` then no longer has."""
    return {name: arguments.pop(name) for name in names if name in arguments}
