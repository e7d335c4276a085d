"""A database connection (PEP 249) whose statements run pruned, in one session of Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.hooks.sql_cursor import Cursor, Rows
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
)
from airflow_hive_opt.provider.connections import deployment_of
from airflow_hive_opt.provider.embedded import (
    OpenSession,
    embedded_session,
    embedded_settings,
)
from airflow_hive_opt.provider.outcome import masked
from airflow_hive_opt.provider.sigterm import on_sigterm
from airflow_hive_opt.provider.start_errors import start_errors
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.reruns import RanStatement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.hooks.sql_options import SqlOptions
    from airflow_hive_opt.hooks.sql_statements import SqlStatements
    from airflow_hive_opt.spark.application.completion import Result

_UNBOUND = re.compile(r"\[UNBOUND_SQL_PARAMETER\] Found the unbound parameter: (\w+)")


class SqlConnection:
    """Runs each statement as ``MapJoinPruneOperator`` does, all in one session.

    The session starts with the first statement and ends with :meth:`close`, or with the statement
    that runs when Airflow stops the task. What a statement sets, defines or uses holds for the
    statements after it. Spark has no transactions.

    :param name: the name of the Spark application.
    :param options: how statements run.
    :param database: the database of tables without a database name; ``None`` for Spark's default.
    :param most_rows: how many rows of a statement may be fetched.
    :param statements: where the statements leave what they do.
    :param ran: gets each statement as soon as Spark has run it.
    """

    def __init__(
        self,
        name: str,
        options: SqlOptions,
        database: str | None,
        most_rows: int,
        statements: SqlStatements,
        ran: list[RanStatement],
    ) -> None:
        self._name = name
        self._options = options
        self._database = database
        self._most_rows = most_rows
        self._statements = statements
        self._ran = ran
        self._open = ExitStack()
        self._interrupt: Callable[[], None] | None = None
        self._is_stopped = False
        self._interruption: BaseException | None = None

    def cursor(self) -> Cursor:
        """A cursor; all cursors share the session."""
        return Cursor(self._run)

    def commit(self) -> None:
        """Does nothing: each statement has its effect when it has run."""

    def rollback(self) -> None:
        """Does nothing: a statement that has run can't be undone."""

    def close(self) -> None:
        """Ends the session, and a statement that a timeout has interrupted."""
        if (error := self._interruption) is None:
            self._open.close()
        else:
            self._open.__exit__(type(error), error, error.__traceback__)
        self._interrupt = self._interruption = None
        self.__dict__.pop("_spark", None)

    @cached_property
    def _spark(self) -> OpenSession:
        self._open.enter_context(on_sigterm(self._stop))
        found = self._open.enter_context(self._opened())
        if self._database:
            _use(found.session, self._database)
        return found

    @contextmanager
    def _opened(self) -> Iterator[OpenSession]:
        """A session where ``spark_conn_id`` says; raises ``AirflowException``."""
        options, conn_id = self._options, self._options.spark_conn_id
        place = deployment_of(conn_id)
        if place.kind == "submitted":
            raise without_stack(
                AirflowFailException(
                    f"the connection {conn_id!r} submits applications to a cluster, which return "
                    "no rows: SQL operators need a local master or a Spark Connect server as "
                    "spark_conn_id. MapJoinPruneOperator runs statements on such a cluster"
                )
            )
        if place.kind == "connect":
            from airflow_hive_opt.spark.session.connect import end, remote_session

            given = {key: str(value) for key, value in options.conf.items()}
            with (
                start_errors(f"connection {conn_id!r}: "),
                remote_session(place.address, given) as session,
            ):
                self._interrupt = partial(end, session)
                yield OpenSession(session, 0.0)
            return

        def started(_: SparkSession | None, interrupt: Callable[[], None]) -> None:
            self._interrupt = interrupt

        settings = embedded_settings(place.address, options.metastore_conn_id, options.conf)
        with embedded_session(self._name, settings, started) as found:
            yield found

    def _stop(self) -> None:
        self._is_stopped = True
        if self._interrupt is not None:
            self._interrupt()

    def _run(self, sql: str, parameters: Any) -> Rows:
        before = len(self._ran)
        try:
            return self._rows_of(sql, parameters)
        except AirflowException:
            raise
        except Exception as error:
            spark: OpenSession | None = self.__dict__.get("_spark")
            why = spark.why_failed() if spark else None
            has_run = "the statement has run, but then " if len(self._ran) > before else ""
            message = f"{has_run}{why or f'{type(error).__name__}: {in_words(error)}'}"
            raise without_stack(AirflowException(masked(message))) from error
        except BaseException as error:
            self._interruption = error
            raise

    def _rows_of(self, sql: str, parameters: Any) -> Rows:
        # late: DAG files that name the hook do not load PySpark
        from airflow_hive_opt.documents.job import Status
        from airflow_hive_opt.spark.application.run import run_in_session
        from airflow_hive_opt.spark.session.session_conf import all_set

        spark, most = self._spark, self._most_rows
        if self._is_stopped:
            raise without_stack(AirflowException("the task was stopped before this statement"))
        settings, database = all_set(spark.session), spark.session.catalog.currentDatabase()
        place = self._statements.place_of(sql)
        try:
            job = self._options.job(sql, place, parameters, most + 1, settings)
        except ValueError as error:
            raise without_stack(AirflowFailException(masked(str(error)))) from None
        results: list[Result] = []

        def receive(result: Result) -> Result:
            results.append(result)
            self._ran.append(RanStatement(sql))
            return replace(result, columns=(), rows=())  # an outcome has rows as text, for the log

        outcome = run_in_session(spark.session, job, ObjectStoragePath, receive)
        if outcome.status is Status.REFUSED and (name := _UNBOUND.search(outcome.message)):
            message = f"the parameter :{name[1]} has no value: add it to parameters"
            outcome = replace(outcome, message=message)
        if self._is_stopped and outcome.status is not Status.DONE:
            message = "the task was stopped while this statement ran"
            outcome = replace(outcome, status=Status.FAILED, message=message)
        if results:
            self._ran[-1] = RanStatement(sql, _scanned(outcome.summary or {}))
        self._statements.finish(sql, database, place, spark.explained(outcome))
        found = results[0]
        return Rows(
            found.columns, found.types, list(found.rows[:most]), is_all=len(found.rows) <= most
        )


def _scanned(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """The tables that a run has read, or whose rows it knew without."""
    found = (
        each for part in ("decisions", "reads", "eliminated") for each in summary.get(part, ())
    )
    return tuple(each["table"] for each in found if each["table"])


def _use(session: Any, database: str) -> None:
    from pyspark.errors import PySparkException

    from airflow_hive_opt.spark.session.statement_errors import is_refusal

    try:
        session.catalog.setCurrentDatabase(database)
    except PySparkException as error:
        kind = AirflowFailException if is_refusal(error) else AirflowException
        message = f"the database {database!r} can't be used: {in_words(error)}"
        raise without_stack(kind(message)) from None
