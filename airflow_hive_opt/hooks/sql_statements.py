"""What the statements of a hook leave: descriptors, log lines, XComs for the pages, lineage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_hive_opt.provider.airflow_compat import AirflowException, get_current_context
from airflow_hive_opt.provider.attempts import checked_attempt_path, default_root, instance_path
from airflow_hive_opt.provider.outcome import log_outcome, publish, raise_unless_done
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.tables import reads_no_rows, tables_of

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Outcome
    from airflow_hive_opt.provider.airflow_compat import Context


@dataclass(frozen=True)
class Place:
    """The path of a statement's descriptor, and the task instance whose page shows it.

    Gates hold for a statement that ``reads`` a table.
    """

    path: str
    reads: bool
    instance: Any = None


@dataclass(frozen=True)
class FinishedStatement:
    """A statement that has come to an end; ``ran`` says whether Spark ran it.

    ``database`` is that of tables without a database name.
    """

    sql: str
    database: str
    summary: Mapping[str, Any] | None
    ran: bool


class SqlStatements:
    """The statements of one hook, in their order.

    The page of a task instance shows one statement: the first that reads a table. It is at the
    attempt's own path, and the others are beside it.
    """

    def __init__(self, log: Any, conn_id: str, root: str | None) -> None:
        self.finished: list[FinishedStatement] = []
        self._log = log
        self._conn_id = conn_id
        self._root = root or default_root()
        self._count = 0
        self._has_page = False

    def place_of(self, sql: str) -> Place:
        """The place of the next statement; raises ``AirflowFailException`` for a wrong root."""
        self._count += 1
        reads = _reads_a_table(sql)
        if (context := running_task()) is None:
            at = "hook", uuid4().hex, self._conn_id, -1, self._count
            return Place(str(instance_path(self._root, *at)), reads)
        path = checked_attempt_path(self._root, context)
        if self._has_page or not reads:
            return Place(str(path.with_name(f"{path.stem}.{self._count}.json")), reads)
        self._has_page = True
        return Place(str(path), reads, context["ti"])

    def finish(self, sql: str, database: str, place: Place, outcome: Outcome) -> None:
        """Publishes a statement's outcome; raises ``AirflowException`` unless it is done."""
        ran = outcome.statement is not None
        self.finished.append(FinishedStatement(sql.strip(), database, outcome.summary, ran))
        publish(self._log, place.instance, outcome, decided=True, returned=False)
        raise_unless_done(self._log, outcome)
        log_outcome(self._log, outcome)


def running_task() -> Context | None:
    """The context of the task that runs here; ``None`` outside a task."""
    try:
        return get_current_context()
    except (AirflowException, RuntimeError):
        return None


def _reads_a_table(sql: str) -> bool:
    try:
        return bool(tables_of(sql).reads) and not reads_no_rows(sql)
    except PlanError:
        return True
