"""A statement on a Spark Connect server, which the worker or the triggerer waits for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.job import Outcome, Stages, Status
from airflow_hive_opt.documents.remote_operation import OperationId
from airflow_hive_opt.operators.arguments import NOT_DEFERRED
from airflow_hive_opt.provider.airflow_compat import (
    TRIGGERS_ARE_KILLED,
    AirflowFailException,
    DecoratedOperator,
)
from airflow_hive_opt.provider.applications.deferral import deadline, stop_unless_followed
from airflow_hive_opt.provider.connect_run import ConnectRun
from airflow_hive_opt.provider.outcome import masked
from airflow_hive_opt.provider.start_errors import start_errors
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.spark.session.connect import server_of
from airflow_hive_opt.spark.session.left_running import LeftRunning
from airflow_hive_opt.statement.tables import writes_rows
from airflow_hive_opt.triggers.connect_statement import ConnectStatementTrigger

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.connections import Deployment

_LATE = "its execution_timeout was over, so the statement was stopped"


@contextmanager
def connected(
    operator: Any, context: Context, place: Deployment, may_defer: bool = False
) -> Iterator[ConnectRun]:
    """The attempt's run on the server, which ``on_kill`` of the operator interrupts in the block.

    Raises ``AirflowException`` for errors of the connection.
    """
    conf = {key: str(value) for key, value in (operator.conf or {}).items()}
    run = ConnectRun(context, operator.attempt_path(context), place.address, conf, may_defer)
    operator._interrupt = run.interrupt
    try:
        with start_errors(f"connection {operator.conn_id!r}: "):
            yield run
    finally:
        operator._interrupt = None
        run.wait_until_stopped()


def outcome_over_connect(operator: Any, context: Context, job: Job, place: Deployment) -> Outcome:
    """Runs the job in a new session on the server.

    Raises ``TaskDeferred``, and ``AirflowException`` if Airflow has stopped the task.
    """
    with connected(operator, context, place, defers(operator, job)) as run:
        operator.raise_if_stopped()
        try:
            return run.outcome(job, lambda: operator.prepared(context, job, place))
        except LeftRunning as left:
            run.raise_if_stopped()
            wait(operator, context, run, place.address, left.id)
            raise


def defers(operator: Any, job: Job) -> bool:
    """Whether the triggerer may wait for the job's statement; else logs why it can't."""
    if not operator.deferrable or job.stages is Stages.KEYS:
        return False
    if (why := _why_not(job)) is not None:
        operator.log.info(NOT_DEFERRED, why)
    return why is None


def _why_not(job: Job) -> str | None:
    if not TRIGGERS_ARE_KILLED:
        return "this needs Airflow 3.3"
    if job.stages is Stages.LOCAL_TASK:
        return "over Spark Connect, a local task reads its keys into the worker"
    if not writes_rows(job.statement):
        return "over Spark Connect, only a statement that writes goes on without its worker"
    return None


def wait(operator: Any, context: Context, run: ConnectRun, url: str, found: OperationId) -> None:
    """Waits in the triggerer: raises ``TaskDeferred``."""
    server = server_of(url)
    operator.log.info("the triggerer waits for the statement on %s", server)
    until = deadline(context, operator.execution_timeout)
    # Airflow's database keeps this. Other operators render their statement again.
    is_function = isinstance(operator, DecoratedOperator)
    sql = masked(operator.sql) if is_function else None
    stop_unless_followed(f"the statement on {server}", run.stop, context, operator.log)
    operator.defer(
        trigger=ConnectStatementTrigger(operator.conn_id, server, **asdict(found), deadline=until),
        method_name="resume_statement",
        kwargs={"begun": {"sql": sql, **asdict(found)}},
    )


def outcome_after_wait(
    operator: Any, run: ConnectRun, event: dict[str, Any], begun: dict[str, Any]
) -> Outcome | None:
    """The outcome of the statement that :func:`wait` has waited for.

    ``None`` if the attempt has its work still to do. The statement of a decorated function is set
    again. Raises what :meth:`ConnectRun.outcome_after_wait` raises.
    """
    sql = begun.get("sql")
    try:
        found = OperationId(**{name: begun[name] for name in begun if name != "sql"})
    except TypeError:
        message = (
            "this task was deferred by another version of this package, so nothing shows how its "
            "statement has ended. Look at the table, then clear the task to run the statement again"
        )
        raise without_stack(AirflowFailException(message)) from None
    if event["how"] == "lost":
        operator.log.warning("the triggerer could not follow the statement, so this worker waits")
    outcome = run.outcome_after_wait(found, event)
    operator.sql = sql or operator.sql
    if outcome is not None and outcome.status is Status.FAILED and event["how"] == "late":
        return replace(outcome, message=_LATE)
    return outcome
