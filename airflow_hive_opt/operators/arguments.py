"""Checks an operator's arguments, when the DAG is parsed and before a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from airflow_hive_opt.provider.airflow_compat import AirflowFailException
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf
from airflow_hive_opt.statement.arguments import check_named_values, check_whole_number

SHOW_ROWS = 5
"""How many rows of a SELECT the log shows, unless argument or configuration set another number."""

NOT_DEFERRED = "the task can't be deferred, and keeps its slot while it waits: %s"
"""The log line of a task that waits in its worker; it gets the reason."""

_WHERE = ("auto", "spark", "worker")
_NO_TEXT = (type(None), bool, int, float, bytes, Mapping, list, tuple, Set)
_NO_MAPPING = (bool, int, float, bytes, list, tuple, Set)


def check_parsed(sql: object, **mappings: object) -> None:
    """Raises ``ValueError`` for arguments that no template or task output can make valid."""
    if isinstance(sql, _NO_TEXT) or (isinstance(sql, str) and not sql.strip()):
        raise ValueError(f"sql must be a statement or the name of a .sql file, not {sql!r}")
    for name, value in mappings.items():
        is_text = isinstance(value, str) and not _is_template(value)
        if isinstance(value, _NO_MAPPING) or is_text:
            raise ValueError(f"{name} must be a dictionary with names for keys, not {value!r}")


def given_switches(operator: object, names: Sequence[str]) -> dict[str, Any]:
    """The arguments ``names`` of an operator, without those that are ``None``."""
    values = {name: getattr(operator, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def check_switches(given: Mapping[str, object]) -> None:
    """Raises ``ValueError`` for switches that no template or task output can make valid."""
    final = {
        name: value
        for name, value in given.items()
        if isinstance(value, (*_NO_TEXT, str)) and not _is_template(str(value))
    }
    if final:
        # late: most DAG files give none
        from airflow_hive_opt.statement.switches import Switches

        Switches.of(final)


def check_rendered(sql: object, **mappings: object) -> None:
    """Raises ``AirflowFailException`` for arguments that are not valid after rendering."""
    if not isinstance(sql, str) or not sql.strip():
        raise AirflowFailException(f"sql must be a statement once it is rendered, not {sql!r}")
    try:
        for name, value in mappings.items():
            check_named_values(name, {} if value is None else value)
    except ValueError as error:
        raise AirflowFailException(str(error)) from None


def check_local_task(choice: str | None, called: str = "local_task") -> None:
    """Raises ``ValueError`` unless the value is ``auto``, ``spark``, ``worker`` or ``None``."""
    if choice not in (None, *_WHERE):
        raise ValueError(
            f"{called} must be {', '.join(_WHERE[:-1])} or {_WHERE[-1]}, not {choice!r}"
        )


def where_local_task_runs(given: str | None) -> str:
    """The operator's ``local_task``, else Airflow's; raises ``AirflowFailException``."""
    configured = str(airflow_conf.get("hive_opt", "local_task", fallback="") or _WHERE[0])
    try:
        check_local_task(configured, "[hive_opt] local_task")
    except ValueError as error:
        raise AirflowFailException(str(error)) from None
    return given or configured


def is_deferrable(asked: object) -> bool:
    """The argument ``deferrable``, else Airflow's default for it; raises ``ValueError``."""
    if asked is None:
        return bool(airflow_conf.getboolean("operators", "default_deferrable", fallback=False))
    if not isinstance(asked, bool):
        raise ValueError(f"deferrable must be True or False, not {asked!r}")
    return asked


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text


def rows_to_show(given: int | None) -> int:
    """The operator's ``show_rows``, else Airflow's; raises ``AirflowFailException``."""
    if given is not None:
        return given
    configured: Any = airflow_conf.get("hive_opt", "show_rows", fallback="") or SHOW_ROWS
    try:
        rows = int(configured)
        check_whole_number("[hive_opt] show_rows", rows)
    except ValueError:
        raise AirflowFailException(
            f"[hive_opt] show_rows must be a whole number of at least 0, not {configured!r}"
        ) from None
    return rows
