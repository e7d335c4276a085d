"""Errors of the command line for a wrong statement, mostly before Spark starts."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path

from airflow_hive_opt.hive.parser.statement_parser import parse_hive
from airflow_hive_opt.statement.errors import PlanError, pointer
from airflow_hive_opt.statement.parse import parse, why_unsupported
from airflow_hive_opt.statement.precheck import check_first_word, check_tables, parameters_of
from airflow_hive_opt.statement.script import split_settings

_POSITION = re.compile(r"line (\d+), column (\d+): ")


def show_error(message: str, sql: str) -> None:
    """Prints an error, and the SQL's line with a caret if the error begins with a position."""
    print(f"error: {message}", file=sys.stderr)
    if at := _POSITION.match(message):
        print(pointer(sql, int(at[1]), int(at[2])), file=sys.stderr)


def check_statement(script: str, parameters: Collection[str]) -> None:
    """Raises :class:`PlanError` for an unknown statement and for parameters without a value."""
    sql = split_settings(script)[1]
    check_first_word(sql)
    for name in parameters_of(sql):
        if name not in parameters:
            at = f"--param {name}=VALUE"
            raise PlanError("PARSE", f"the parameter :{name} has no value: add {at}")


def check_explained(script: str, warehouse: Path) -> None:
    """Raises :class:`PlanError` for a statement that can't be explained.

    Neither Hive nor the planner can parse it, or it reads a table that does not exist.
    """
    sql = split_settings(script)[1]
    if why_unsupported(sql):
        return
    try:
        parse_hive(sql)
    except RecursionError:
        return
    except PlanError as error:
        if not _is_parsed(sql):
            raise error from None
    from airflow_hive_opt.spark.session.derby import embedded_tables

    if tables := embedded_tables(warehouse):
        check_tables(sql, tables)


def _is_parsed(sql: str) -> bool:
    """Whether the planner can parse the statement; also true if it is nested too deeply."""
    try:
        parse(sql)
    except PlanError:
        return False
    except RecursionError:
        pass
    return True
