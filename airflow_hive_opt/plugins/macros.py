"""Macros for templates; Airflow names them ``macros.hive_opt.NAME``."""

from __future__ import annotations

from typing import Any


def restricted_sql(local_task: Any, guarded: bool = False) -> str:
    """The statement that a local task with ``for_other_runner`` has restricted.

    ``local_task`` is the output of that task, such as ``ti.xcom_pull("look")``. With ``guarded``,
    it is a script with the statements of the guard before it, each with a semicolon at its end.
    """
    # late: every process that loads plugins imports this module
    from airflow_hive_opt.provider import other_runner

    return other_runner.restricted_sql(local_task, guarded)
