"""``PrunedSqlHook``: Airflow's SQL operators, checks and sensors, with pruned statements."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from airflow.providers.common.sql.hooks.handlers import fetch_one_handler
from airflow.providers.common.sql.hooks.sql import DbApiHook

from airflow_hive_opt.get_provider_info import ui_field_behaviour
from airflow_hive_opt.hooks.hive_metastore import spark_conf_of
from airflow_hive_opt.hooks.sql_connection import SqlConnection
from airflow_hive_opt.hooks.sql_options import SqlOptions
from airflow_hive_opt.hooks.sql_script import SqlScript
from airflow_hive_opt.hooks.sql_statements import SqlStatements, running_task
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    mask_secret,
)
from airflow_hive_opt.provider.outcome import masked
from airflow_hive_opt.provider.submission import application_name
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.script import split_statements
from airflow_hive_opt.statement.tables import temporary_view


class PrunedSqlHook(DbApiHook):
    """Runs SQL as ``MapJoinPruneOperator`` does, for the operators and sensors of common.sql.

    The connection has the type ``hive_opt``. Its schema is the database, and its extra has the
    options of :class:`~airflow_hive_opt.hooks.sql_options.SqlOptions`.

    :param hive_opt_conn_id: ID of the connection.
    :param options: options that replace those of the connection, and ``schema`` and ``log_sql``.
    """

    conn_name_attr = "hive_opt_conn_id"
    default_conn_name = "hive_opt_default"
    conn_type = "hive_opt"
    hook_name = "Hive Opt"
    supports_autocommit = False

    def __init__(self, hive_opt_conn_id: str = default_conn_name, **options: Any) -> None:
        self._given = options
        self.schema: str | None = options.get("schema")
        """The database of tables without a database name, which SQL operators set."""
        self._most_rows: int | None = None
        self._script: SqlScript | None = None
        super().__init__(hive_opt_conn_id, log_sql=options.get("log_sql", True))

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """The fields of the connection's form."""
        return ui_field_behaviour(cls.conn_type)

    @cached_property
    def options(self) -> SqlOptions:
        """The connection's options and the hook's; raises ``AirflowFailException``."""
        conn_id = self.get_conn_id()
        try:
            found = self.connection
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {conn_id!r}: add it under Admin > Connections, with the "
                f"type {self.hook_name}"
            ) from None
        try:
            if found.conn_type != self.conn_type:
                raise ValueError(f"its type is {found.conn_type!r}, not {self.conn_type!r}")
            return SqlOptions.of({**found.extra_dejson, **self._given})
        except ValueError as error:
            message = f"connection {conn_id!r}: {masked(str(error))}"
            raise without_stack(AirflowFailException(message)) from None

    @cached_property
    def _statements(self) -> SqlStatements:
        return SqlStatements(self.log, self.get_conn_id(), self.options.descriptor_path)

    def get_conn(self) -> SqlConnection:
        """A connection whose Spark starts with its first statement."""
        options, context = self.options, running_task()
        name = f"airflow {self.get_conn_id()}" if context is None else application_name(context)
        most_rows = options.max_rows if self._most_rows is None else self._most_rows
        database = self.schema or self.connection.schema
        ran = self._script.ran if self._script else []
        return SqlConnection(name, options, database, most_rows, self._statements, ran)

    def run(
        self,
        sql: str | Iterable[str],
        autocommit: bool = False,
        parameters: Iterable[Any] | Mapping[str, Any] | None = None,
        handler: Callable[[Any], Any] | None = None,
        split_statements: bool = False,
        return_last: bool = True,
    ) -> Any:
        """Runs one or several statements in one session; see ``DbApiHook.run``.

        ``parameters`` is a dictionary with the values of the ``:name`` markers. A cursor has at
        most ``max_rows`` rows: a handler that fetches more fails. Without a handler it has none,
        and Spark evaluates a SELECT only until its first row.

        Raises ``AirflowException``, or ``AirflowFailException`` if a retry would change a table
        twice or fail again.
        """
        given = sql if isinstance(sql, str) else list(sql)
        script = SqlScript.of(given, split_statements)
        if isinstance(parameters, Mapping):
            mask_secret(dict(parameters))  # masks those with names of secrets
        self._script = script
        self._most_rows = None
        if handler is None or handler is fetch_one_handler:
            self._most_rows = 0 if handler is None else 1
        handled = handler and (lambda cursor: script.handled(handler, cursor))
        try:
            with script.errors():
                return super().run(
                    given, autocommit, parameters, handled, split_statements, return_last
                )
        finally:
            self._script = self._most_rows = None

    @staticmethod
    def split_sql_string(sql: str, strip_semicolon: bool = False) -> list[str]:  # noqa: ARG004
        """The statements of a script as they are written, without the semicolons at their ends."""
        return [found.text for found in split_statements(sql)]

    def insert_rows(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Raises ``AirflowFailException``: Spark would write a file for each row."""
        raise AirflowFailException(
            "a hive_opt connection can't insert rows of other systems: let Spark read them, and "
            "write them by INSERT ... SELECT"
        )

    def get_openlineage_database_specific_lineage(self, task_instance: Any) -> Any:  # noqa: ARG002
        """The tables and partitions that the hook's statements have read and written."""
        from airflow_hive_opt.provider.lineage import lineage_of, merged, namespace_of

        options, finished = self.options, self._statements.finished
        if not finished:
            return None
        namespace = namespace_of({**options.conf, **spark_conf_of(options.metastore_conn_id)})
        views = {view for found in finished if (view := temporary_view(found.sql))}
        return merged(
            [
                lineage_of(found.sql, found.summary, found.ran, namespace, found.database, views)
                for found in finished
            ]
        )

    def _run_command(self, cur: Any, sql_statement: str, parameters: Any) -> None:
        assert self._script is not None
        cur.before = self._script.begin().before
        super()._run_command(cur, sql_statement, parameters)

    def _get_pandas_df(self, *args: Any, **kwargs: Any) -> Any:
        with _own_errors(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "pandas only supports SQLAlchemy", UserWarning)
            return super()._get_pandas_df(*args, **kwargs)

    def _get_pandas_df_by_chunks(self, *args: Any, **kwargs: Any) -> Any:
        with _own_errors():
            yield from super()._get_pandas_df_by_chunks(*args, **kwargs)

    def _get_polars_df_by_chunks(self, *args: Any, **kwargs: Any) -> Any:
        # without it, Polars returns one frame, and common.sql yields its columns
        return super()._get_polars_df_by_chunks(*args, **{"iter_batches": True, **kwargs})


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raises this package's errors as they are; pandas makes them errors of a database."""
    try:
        yield
    except Exception as error:
        if isinstance(error.__cause__, AirflowException):
            raise error.__cause__ from None
        raise
