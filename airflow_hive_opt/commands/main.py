"""``airflow-hive-opt``: plan, prune and run a statement without Airflow."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from airflow_hive_opt import __version__
from airflow_hive_opt.commands import descriptors, explain, key_index, report, run, session
from airflow_hive_opt.commands.arguments import BAD_INPUT, UsageError
from airflow_hive_opt.spark.session.spark_log import LOG_LEVEL, LOGGER
from airflow_hive_opt.statement.catalog import CatalogFileError

COMMANDS = (explain, run, report, key_index, descriptors, session)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 1 for a failed run, or 2 for invalid input."""
    options = _parser().parse_args(arguments)
    _set_up_logs(options)
    try:
        code: int = options.run(options)
        return code
    except (CatalogFileError, UsageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _set_up_logs(options: argparse.Namespace) -> None:
    """Logs only warnings, and none of Spark's, unless the user asks for more."""
    asked = options.verbose or any(LOG_LEVEL in each for each in getattr(options, "conf", ()))
    logging.basicConfig(
        level=logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s" if options.verbose else "%(message)s",
    )
    package = logging.getLogger("airflow_hive_opt")
    package.setLevel(logging.INFO if options.verbose else logging.WARNING)
    logging.getLogger(LOGGER).setLevel(logging.INFO if asked else logging.CRITICAL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="airflow-hive-opt", description="Plan, prune and run a statement without Airflow."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
