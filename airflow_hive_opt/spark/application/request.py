"""The input of a run (``Request``) and its result (``Result``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_hive_opt.documents.gates import Gates, OnEmpty, OnNoPrune
from airflow_hive_opt.documents.report import Report
from airflow_hive_opt.spark.keys.key_set import MAX_KEY_BYTES, MAX_KEYS, KeyBounds
from airflow_hive_opt.statement.arguments import named_values, parameters_of_sql, whole_number
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import PYTHON_FUNCTIONS, Settings


@dataclass(frozen=True)
class Request:
    """A statement to run, with its settings and limits.

    - ``max_keys`` and ``max_key_bytes`` limit the number and the total bytes of one small table's
      keys.
    - ``max_partitions``, ``max_bytes``, ``on_empty`` and ``on_no_prune`` are those of
      :class:`~airflow_hive_opt.documents.gates.Gates`.
    - ``hold_snapshots`` says that the statement reads small Iceberg tables at the snapshots from
      which their keys come.
    - ``unasked`` is what an earlier run of the statement found out; see
      :class:`~airflow_hive_opt.spark.local_task.earlier_runs.EarlierRuns`.
    - ``show_rows`` is how many rows of a SELECT the run returns; with 0 Spark only plans a SELECT.

    Raises ``ValueError`` for invalid values.
    """

    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings.of)
    session_conf: Mapping[str, str] = field(default_factory=dict)
    max_keys: int = MAX_KEYS
    max_key_bytes: int = MAX_KEY_BYTES
    max_partitions: int | None = None
    max_bytes: int | None = None
    hold_snapshots: bool = False
    unasked: Mapping[str, int] = field(default_factory=dict)
    show_rows: int = 20
    on_empty: str = OnEmpty.RUN
    on_no_prune: str = OnNoPrune.RUN

    @classmethod
    def of(
        cls, script: str, hive_conf: Mapping[str, object] | None = None, **options: Any
    ) -> Request:
        """A request for a script: ``SET`` lines first, then the statement.

        The ``SET`` lines apply to Spark's session. The planner reads Hive's settings among them
        too; they take precedence over ``hive_conf``. Raises ``ValueError``.
        """
        if not isinstance(script, str):
            raise ValueError(f"sql must be a statement, not {script!r}")
        named_values("hive_conf", hive_conf or {})
        own, sql = split_settings(script)
        for_hive = {name: value for name, value in own.items() if not name.startswith("spark.")}
        settings = Settings.for_run(hive_conf or {}, for_hive)
        return cls(sql, settings=settings, session_conf=own, **options)

    def __post_init__(self) -> None:
        """Checks statement, parameters and bounds."""
        if not isinstance(self.sql, str) or not self.sql.strip():
            raise ValueError(f"sql must be a statement, not {self.sql!r}")
        parameters_of_sql(self.parameters)
        whole_number("max_keys", self.max_keys, 1)
        whole_number("max_key_bytes", self.max_key_bytes, 1)
        whole_number("show_rows", self.show_rows)
        _ = self.gates

    @property
    def bounds(self) -> KeyBounds:
        """What the keys of one small table may be."""
        allowed = self.settings.is_on(PYTHON_FUNCTIONS)
        return KeyBounds(self.max_keys, self.max_key_bytes, allowed)

    @property
    def gates(self) -> Gates:
        """The conditions that the descriptor must meet before the join runs."""
        return Gates(self.max_partitions, self.max_bytes, self.on_empty, self.on_no_prune)


@dataclass(frozen=True)
class Result:
    """A run's report, a SELECT's first rows, and the statement that Spark ran.

    ``plan`` gives the JVM's plan that has run; it is ``None`` if the plan is not known.
    """

    report: Report
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    statement: str
    plan: Callable[[], Any] | None = None
