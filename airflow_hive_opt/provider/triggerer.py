"""What the application trigger uses of Airflow, apart from ``airflow_compat``.

A triggerer imports a trigger in its loop, which waits for that. ``airflow_compat`` would load the
Spark provider there. Needs Airflow 3.
"""

from __future__ import annotations

from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

__all__ = ("BaseTrigger", "TriggerEvent", "state_of_task")


async def state_of_task(instance: Any) -> str | None:
    """The state of a trigger's task instance; ``None`` if there is none any more.

    Raises whatever Airflow raises.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
    from asgiref.sync import sync_to_async

    states = await sync_to_async(RuntimeTaskInstance.get_task_states)(
        dag_id=instance.dag_id,
        task_ids=[instance.task_id],
        run_ids=[instance.run_id],
        map_index=instance.map_index,
    )
    mapped = instance.map_index is not None and instance.map_index >= 0
    name = f"{instance.task_id}_{instance.map_index}" if mapped else instance.task_id
    found = states.get(instance.run_id, {}).get(name)
    return None if found is None else str(getattr(found, "value", found))
