"""``airflow-hive-opt``: plan, prune and run a statement without Airflow."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from airflow_hive_opt import __version__
from airflow_hive_opt.commands.explain import FORMATS, explain_batch, explain_one, stage_by_rule
from airflow_hive_opt.commands.session import session_status, session_stop
from airflow_hive_opt.commands.statement_check import check_explained, check_statement, show_error
from airflow_hive_opt.explain.plan_text import error_to_json, to_json, to_text
from airflow_hive_opt.spark.session.spark_log import LOG_LEVEL, LOGGER
from airflow_hive_opt.statement.catalog import CatalogFileError, JsonCatalog
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.precheck import check_tables, with_values
from airflow_hive_opt.statement.script import split_settings

_BAD_INPUT = 2
_FAILED = 1


class _UsageError(Exception):
    """Invalid arguments; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 1 for a failed run, or 2 for invalid input."""
    options = _parser().parse_args(arguments)
    _set_up_logs(options)
    try:
        code: int = options.run(options)
        return code
    except (CatalogFileError, _UsageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _set_up_logs(options: argparse.Namespace) -> None:
    """Shows warnings alone, and none of Spark's, unless the user asks for more."""
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
    explain = commands.add_parser("explain", help="show what would be pruned, and the reasons")
    explain.add_argument("--format", choices=FORMATS, default="text")
    explain.add_argument(
        "--batch", type=Path, metavar="FILE", help="plan many statements, one JSON object per line"
    )
    explain.add_argument(
        "--stage-by-rule", action="store_true", help="show the operators after every rule"
    )
    explain.add_argument(
        "--catalog", type=Path, metavar="FILE", help="a TABLES.json; with it no Spark is started"
    )
    explain.set_defaults(run=_explain)
    prune = commands.add_parser("prune", help="collect keys, write the partition descriptor")
    prune.add_argument("--descriptor", metavar="URI", help="where to write it")
    prune.set_defaults(run=partial(_run, stages="local task"), rows=0)
    run = commands.add_parser("run", help="prune, then run the statement")
    run.add_argument("--descriptor", metavar="URI", help="where to write the descriptor")
    run.add_argument("--rows", type=int, default=20, help="rows of a SELECT to print (20)")
    run.set_defaults(run=partial(_run, stages="both"))
    shown = commands.add_parser("report", help="show what a run pruned, from its descriptor")
    shown.add_argument("path", metavar="PATH", help="the descriptor: a file or URI")
    shown.add_argument("--html", type=Path, metavar="FILE", help="write a page into this file")
    shown.add_argument("-v", "--verbose", action="store_true")
    shown.set_defaults(run=_report)
    descriptors = commands.add_parser("descriptors", help="manage stored descriptors")
    kinds = descriptors.add_subparsers(required=True, metavar="COMMAND")
    old = kinds.add_parser("delete", help="delete old descriptors")
    old.add_argument("root", metavar="PATH", help="the descriptor_path: a folder or URI")
    old.add_argument("--older-than", required=True, metavar="AGE", help="such as 30d, 36h or 2w")
    old.add_argument("--dry-run", action="store_true", help="only list them")
    old.add_argument("-v", "--verbose", action="store_true")
    old.set_defaults(run=_delete)
    session = commands.add_parser("session", help="the Spark that the tasks of a machine share")
    actions = session.add_subparsers(required=True, metavar="COMMAND")
    status = actions.add_parser("status", help="show what runs, for the current user")
    stop = actions.add_parser("stop", help="end those that no task uses")
    stop.add_argument("--force", action="store_true", help="also those in use: their tasks fail")
    for action in (status, stop):
        action.add_argument("-v", "--verbose", action="store_true")
    status.set_defaults(run=lambda _: session_status())
    stop.set_defaults(run=lambda options: session_stop(options.force))
    for command in (explain, prune, run):
        command.add_argument("sql", nargs="?", help="the statement")
        command.add_argument("-f", "--file", type=Path, help="a file with the statement")
        command.add_argument(
            "--set", action="append", default=[], metavar="K=V", help="a Hive setting"
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
    for command in (prune, run):
        command.add_argument("--max-keys", type=int, default=100_000)
        command.add_argument("--max-key-bytes", type=int, default=16 << 20)
        command.add_argument(
            "--hold-snapshots",
            action="store_true",
            help="read small Iceberg tables at the snapshots from which their keys come",
        )
        command.add_argument(
            "--conf", action="append", default=[], metavar="K=V", help="a Spark setting"
        )
    return parser


def _report(options: argparse.Namespace) -> int:
    from airflow_hive_opt.commands.report import report
    from airflow_hive_opt.documents.storage import DescriptorError
    from airflow_hive_opt.pages.html_file import NotBuiltError

    try:
        report(options.path, options.html)
    except (DescriptorError, NotBuiltError, OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED
    return 0


def _explain(options: argparse.Namespace) -> int:
    if options.batch is not None:
        if options.sql or options.file or options.catalog or options.set or options.param:
            raise _UsageError("--batch takes statements, tables and settings from its file alone")
        try:
            with options.batch.open(encoding="utf-8") as lines:
                return 0 if explain_batch(lines, sys.stdout) else _BAD_INPUT
        except (OSError, UnicodeDecodeError) as error:
            raise _UsageError(f"can't read {options.batch}: {error}") from error
    sql, overrides, parameters = _sql(options), _pairs(options.set), _pairs(options.param)
    show = stage_by_rule if options.stage_by_rule else partial(explain_one, form=options.format)
    try:
        check_statement(sql, parameters)
        sql = with_values(sql, parameters)
        if options.catalog is not None:
            catalog = JsonCatalog.read(options.catalog)
            try:
                print(*show(sql, catalog, overrides), sep="\n")
            except PlanError:
                check_tables(split_settings(sql)[1], catalog.names())  # suggests another name
                raise
        else:
            _explain_on_spark(options, sql, overrides)
    except PlanError as error:
        if options.format == "json":
            print(json.dumps(error_to_json(error)))
        else:
            show_error(str(error), sql)
        return _BAD_INPUT
    return 0


def _explain_on_spark(options: argparse.Namespace, sql: str, overrides: dict[str, str]) -> None:
    """Explains with the embedded warehouse's tables.

    If Hive rejects a statement that Spark accepts, prints the plan of a run, without Hive's stages.
    """
    from airflow_hive_opt.spark.application.job import Job
    from airflow_hive_opt.spark.application.planning import plan_on_spark
    from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
    from airflow_hive_opt.spark.local_task.correlate import (
        StatisticsCatalog,
        correlate,
        words_of,
        work_on_spark,
    )
    from airflow_hive_opt.spark.session.java import SparkStartError
    from airflow_hive_opt.spark.session.session import (
        default_warehouse,
        embedded_conf,
        has_spark,
        spark_session,
    )

    warehouse = options.warehouse or default_warehouse()
    if not has_spark():
        check_explained(sql, warehouse)
    conf = {**embedded_conf(warehouse), **_whole_log(options)}
    try:
        with spark_session("airflow-hive-opt explain", conf) as session:
            catalog = SparkCatalog(session)
            work = partial(work_on_spark, session)
            rewritten = partial(correlate, session, catalog)
            show = partial(explain_one, form=options.format, measure=work, correlate=rewritten)
            try:
                explained = stage_by_rule if options.stage_by_rule else show
                print(
                    *explained(sql, StatisticsCatalog(catalog, words_of(sql)), overrides), sep="\n"
                )
            except PlanError as error:
                try:
                    job = Job(sql, hive_conf=overrides)
                except ValueError as wrong:
                    raise _UsageError(str(wrong)) from wrong
                planned = plan_on_spark(session, catalog, job)
                print(f"note: Hive would reject this, Spark runs it: {error}", file=sys.stderr)
                as_json = options.format == "json"
                print(json.dumps(to_json(planned), indent=1) if as_json else to_text(planned))
    except SparkStartError as error:
        raise _UsageError(str(error)) from error


def _delete(options: argparse.Namespace) -> int:
    from datetime import datetime, timezone

    from upath import UPath

    from airflow_hive_opt.documents.cleaning import age, older_than

    try:
        limit = age(options.older_than)
        root = UPath(options.root)
        if not root.is_dir():
            raise _UsageError(f"there is no folder {options.root}")
        count = 0
        for path in older_than(root, limit, datetime.now(timezone.utc)):
            count += 1
            if options.dry_run or options.verbose:
                print(path)
            if not options.dry_run:
                path.unlink(missing_ok=True)
    except (ValueError, ImportError) as error:
        raise _UsageError(str(error)) from error
    except OSError as error:
        print(f"error: {options.root}: {error}", file=sys.stderr)
        return _FAILED
    print(f"{count} files {'would be ' if options.dry_run else ''}deleted", file=sys.stderr)
    return 0


def _run(options: argparse.Namespace, stages: str) -> int:
    sql, parameters = _sql(options), _pairs(options.param)
    try:
        check_statement(sql, parameters)
    except PlanError as error:
        show_error(str(error), sql)
        return _BAD_INPUT
    from airflow_hive_opt.commands.run import run
    from airflow_hive_opt.spark.application.job import Job, Stages

    try:
        job = Job(
            sql,
            options.descriptor or "",
            Stages(stages),
            parameters=parameters,
            hive_conf=_pairs(options.set),
            max_keys=options.max_keys,
            max_key_bytes=options.max_key_bytes,
            show_rows=options.rows + 1,
            hold_snapshots=options.hold_snapshots,
        )
    except ValueError as error:
        raise _UsageError(str(error)) from error
    conf = {**_whole_log(options), **_pairs(options.conf)}
    return run(job, options.warehouse, conf, options.rows)


def _whole_log(options: argparse.Namespace) -> dict[str, str]:
    """The setting that leaves out no line of Spark's log, if the user wants to see them."""
    return {LOG_LEVEL: "WARN"} if options.verbose else {}


def _sql(options: argparse.Namespace) -> str:
    if (options.sql is None) == (options.file is None):
        raise _UsageError("give the statement either as an argument or with -f FILE")
    if options.sql is not None:
        return str(options.sql)
    try:
        return str(options.file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise _UsageError(f"can't read {options.file}: {error}") from error


def _pairs(assignments: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise _UsageError(f"{assignment!r} is not NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


if __name__ == "__main__":
    sys.exit(main())
