"""The arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from airflow_hive_opt.spark.session.spark_log import LOG_LEVEL
from airflow_hive_opt.statement.switches import SWITCHES

FAILED, BAD_INPUT = 1, 2
"""The exit codes of a failed run, and of invalid input."""


class UsageError(Exception):
    """Invalid arguments; the message says why."""


def add_statement(command: argparse.ArgumentParser) -> None:
    """Adds the statement, its settings and its warehouse."""
    command.add_argument("sql", nargs="?", help="the statement")
    command.add_argument("-f", "--file", type=Path, help="a file with the statement")
    command.add_argument("--set", action="append", default=[], metavar="K=V", help="a Hive setting")
    command.add_argument(
        "--partition-pruning", action=argparse.BooleanOptionalAction, help="prune partitions (on)"
    )
    command.add_argument(
        "--key-predicate",
        action=argparse.BooleanOptionalAction,
        help="use keys on data columns (off)",
    )
    command.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of :NAME in the statement, as text",
    )
    command.add_argument(
        "--warehouse",
        type=Path,
        help="folder of the embedded warehouse (default: "
        "$AIRFLOW_HIVE_OPT_WAREHOUSE or ~/.airflow-hive-opt/warehouse)",
    )
    command.add_argument(
        "-v", "--verbose", action="store_true", help="show the log, and that of Spark"
    )


def add_verbose(command: argparse.ArgumentParser) -> None:
    """Adds ``--verbose`` to a command that starts no Spark."""
    command.add_argument("-v", "--verbose", action="store_true")


def whole_log(options: argparse.Namespace) -> dict[str, str]:
    """The setting of Spark that logs every line, if the user asks for it; else no setting."""
    return {LOG_LEVEL: "WARN"} if options.verbose else {}


def statement_of(options: argparse.Namespace) -> str:
    """The statement, or the content of its file; raises :class:`UsageError`."""
    if (options.sql is None) == (options.file is None):
        raise UsageError("give the statement either as an argument or with -f FILE")
    if options.sql is not None:
        return str(options.sql)
    try:
        return str(options.file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read {options.file}: {error}") from error


def switches_of(options: argparse.Namespace) -> dict[str, object]:
    """The switches that are given, by name."""
    values = {name: getattr(options, name, None) for name in SWITCHES}
    return {name: value for name, value in values.items() if value is not None}


def pairs(assignments: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dictionary; raises :class:`UsageError`."""
    found = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{assignment!r} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    return found
