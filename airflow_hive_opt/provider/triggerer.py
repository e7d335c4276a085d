"""What the wait for an application uses of Airflow, apart from ``airflow_compat``.

A triggerer imports a trigger in its loop, which waits for that. ``airflow_compat`` would load the
Spark provider there. Needs Airflow 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

__all__ = ("BaseTrigger", "TriggerEvent", "at_end_of_process", "state_now", "state_of_task")


async def state_of_task(instance: Any) -> str | None:
    """:func:`state_now` of a trigger's task instance, without blocking the triggerer."""
    from asgiref.sync import sync_to_async

    return await sync_to_async(state_now)(instance)


def state_now(instance: Any) -> str | None:
    """The state of a task instance; ``None`` if there is none any more.

    Raises whatever Airflow raises.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(
        dag_id=instance.dag_id,
        task_ids=[instance.task_id],
        run_ids=[instance.run_id],
        map_index=instance.map_index,
    )
    mapped = instance.map_index is not None and instance.map_index >= 0
    name = f"{instance.task_id}_{instance.map_index}" if mapped else instance.task_id
    found = states.get(instance.run_id, {}).get(name)
    return None if found is None else str(getattr(found, "value", found))


def at_end_of_process(work: Callable[[], None]) -> None:
    """Lets the task's process do the work once, as the last thing, after it has told its state.

    Needs Airflow 3.3.
    """
    from airflow.listeners import hookimpl
    from airflow.sdk.listener import get_listener_manager

    manager = get_listener_manager()

    class AtEnd:
        @hookimpl
        def before_stopping(self) -> None:
            manager.pm.unregister(self)
            work()

    manager.pm.register(AtEnd())
