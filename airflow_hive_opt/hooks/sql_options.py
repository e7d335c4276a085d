"""The options of a ``hive_opt`` connection, which are also those of its hook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.statement.arguments import check_named_values, check_whole_number

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job
    from airflow_hive_opt.hooks.sql_statements import Place

MAX_ROWS = 10_000
_NUMBERS = {"max_rows": 1, "max_keys": 1, "max_key_bytes": 1, "max_partitions": 0, "max_bytes": 0}
_MAPPINGS = ("conf", "hive_conf")
_SWITCHES = ("partition_pruning", "key_predicate", "python_functions", "planning_seconds")
# Arguments of common.sql's hooks, which read some of them from the connection themselves.
_OF_COMMON_SQL = (
    *("schema", "log_sql", "placeholder", "dialect", "sqlalchemy_scheme", "escape_column_names"),
    *("escape_word_format", "insert_statement_format", "replace_statement_format"),
)


@dataclass(frozen=True)
class SqlOptions:
    """How a hook's statements run.

    - ``spark_conn_id`` is where: a ``spark`` connection to a local master, or a ``spark_connect``
      one. Without it, statements run on the embedded Spark.
    - ``max_rows`` is the maximum number of rows that a statement gives to its task.
    - The others have the meanings of ``MapJoinPruneOperator``'s arguments.
    """

    spark_conn_id: str | None = None
    metastore_conn_id: str | None = None
    conf: Mapping[str, Any] = field(default_factory=dict)
    hive_conf: Mapping[str, Any] = field(default_factory=dict)
    descriptor_path: str | None = None
    max_rows: int = MAX_ROWS
    max_keys: int = 100_000
    max_key_bytes: int = 16 << 20
    max_partitions: int | None = None
    max_bytes: int | None = None
    on_empty: str = "run"
    on_no_prune: str = "run"
    hold_snapshots: bool = False
    partition_pruning: bool | str | None = None
    key_predicate: bool | str | None = None
    python_functions: bool | str | None = None
    planning_seconds: int | str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SqlOptions:
        """The options by name, as a connection's extra or its URI gives them.

        Raises ``ValueError`` for a wrong name or value.

        >>> SqlOptions.of({"max_rows": "50", "conf": '{"spark.app.name": "a"}'}).max_rows
        50
        >>> SqlOptions.of({"max_row": 50})
        Traceback (most recent call last):
        ValueError: there is no option max_row
        """
        known = {each.name for each in fields(cls)}
        own = {name: value for name, value in given.items() if name not in _OF_COMMON_SQL}
        if unknown := sorted(own.keys() - known):
            raise ValueError(f"there is no option {', '.join(unknown)}")
        return cls(**{name: _typed(name, value) for name, value in own.items()})

    def __post_init__(self) -> None:
        """Checks all values."""
        from airflow_hive_opt.statement.switches import Switches

        for name, least in _NUMBERS.items():
            if (value := getattr(self, name)) is not None:
                check_whole_number(name, value, least)
        for name in _MAPPINGS:
            check_named_values(name, getattr(self, name))
        if not isinstance(self.hold_snapshots, bool):
            raise ValueError(f"hold_snapshots must be true or false, not {self.hold_snapshots!r}")
        Switches.of(self._switches)
        _ = self._gates

    @property
    def _switches(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in _SWITCHES}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def _gates(self) -> Gates:
        return Gates(self.max_partitions, self.max_bytes, self.on_empty, self.on_no_prune)

    def job(
        self, sql: str, place: Place, parameters: Any, rows: int, session: Mapping[str, str]
    ) -> Job:
        """The job of one statement, which returns up to ``rows`` rows.

        ``session`` are the settings of Spark's session: Hive's settings and the switches among
        them, which earlier statements have set, replace those of the options. Raises
        ``ValueError`` for a statement, parameters or settings that are not valid.
        """
        # late: the hook's module is imported where no statement runs
        from airflow_hive_opt.documents.job import Job
        from airflow_hive_opt.provider.key_indexes import index_path
        from airflow_hive_opt.statement.settings import Settings

        hive, switches = Settings.of_session(session)
        return Job(
            sql=sql,
            path=place.path,
            parameters=parameters,
            hive_conf={**self.hive_conf, **hive},
            switches={**self._switches, **switches},
            max_keys=self.max_keys,
            max_key_bytes=self.max_key_bytes,
            show_rows=rows,
            gates=self._gates if place.reads else Gates(),
            hold_snapshots=self.hold_snapshots,
            index_path=index_path(),
        )


def _typed(name: str, value: Any) -> Any:
    """The value; a connection that is written as a URI has only texts."""
    if not isinstance(value, str):
        return value
    if name in _NUMBERS and value.strip().isdecimal():
        return int(value)
    if name == "hold_snapshots" and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if name in _MAPPINGS:
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:  # without the text, which may hold secrets
            why = f"{error.msg} at line {error.lineno}, column {error.colno}"
            raise ValueError(f"{name} must be a JSON object: {why}") from None
    return value
