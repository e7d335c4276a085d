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
from airflow_hive_opt.explain.plan_text import error_to_json, to_json, to_text
from airflow_hive_opt.explain_command import FORMATS, explain_batch, explain_one, stage_by_rule
from airflow_hive_opt.session_command import session_status, session_stop
from airflow_hive_opt.statement.catalog import CatalogFileError, JsonCatalog
from airflow_hive_opt.statement.errors import PlanError

_BAD_INPUT = 2
_FAILED = 1


class _UsageError(Exception):
    """Invalid arguments; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 1 for a failed run, or 2 for invalid input."""
    options = _parser().parse_args(arguments)
    level = logging.INFO if options.verbose else logging.WARNING
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("airflow_hive_opt").setLevel(level)
    try:
        code: int = options.run(options)
        return code
    except (CatalogFileError, _UsageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="airflow-hive-opt", description=__doc__)
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
    prune.set_defaults(run=_prune)
    run = commands.add_parser("run", help="prune, then run the statement")
    run.add_argument("--descriptor", metavar="URI", help="where to write the descriptor")
    run.add_argument("--rows", type=int, default=20, help="rows of a SELECT to print (20)")
    run.set_defaults(run=_run)
    shown = commands.add_parser("report", help="show what a run pruned, from its descriptor")
    shown.add_argument("path", metavar="PATH", help="the descriptor: a file or URI")
    shown.add_argument("--html", type=Path, metavar="FILE", help="write a page into this file")
    shown.add_argument("-v", "--verbose", action="store_true")
    shown.set_defaults(run=_report)
    sweep = commands.add_parser("descriptors", help="manage stored descriptors")
    kinds = sweep.add_subparsers(required=True, metavar="COMMAND")
    old = kinds.add_parser("prune", help="delete old descriptors")
    old.add_argument("root", metavar="PATH", help="the descriptor_path: a folder or URI")
    old.add_argument("--older-than", required=True, metavar="AGE", help="such as 30d, 36h or 2w")
    old.add_argument("--dry-run", action="store_true", help="only list them")
    old.add_argument("-v", "--verbose", action="store_true")
    old.set_defaults(run=_sweep)
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
            "--warehouse",
            type=Path,
            help="folder of the embedded warehouse (default: "
            "$AIRFLOW_HIVE_OPT_WAREHOUSE or ~/.airflow-hive-opt/warehouse)",
        )
        command.add_argument("-v", "--verbose", action="store_true")
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
    from airflow_hive_opt.pages.html_file import NotBuiltError
    from airflow_hive_opt.report_command import report
    from airflow_hive_opt.runtime.storage import DescriptorError

    try:
        report(options.path, options.html)
    except (DescriptorError, NotBuiltError, OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED
    return 0


def _explain(options: argparse.Namespace) -> int:
    if options.batch is not None:
        if options.sql or options.file or options.catalog or options.set:
            raise _UsageError("--batch takes statements, tables and settings from its file alone")
        try:
            with options.batch.open(encoding="utf-8") as lines:
                return 0 if explain_batch(lines, sys.stdout) else _BAD_INPUT
        except (OSError, UnicodeDecodeError) as error:
            raise _UsageError(f"can't read {options.batch}: {error}") from error
    sql, overrides = _sql(options), _pairs(options.set)
    show = stage_by_rule if options.stage_by_rule else partial(explain_one, form=options.format)
    try:
        if options.catalog is not None:
            print(*show(sql, JsonCatalog.read(options.catalog), overrides), sep="\n")
        else:
            _explain_on_spark(options, sql, overrides)
    except PlanError as error:
        if options.format == "json":
            print(json.dumps(error_to_json(error)))
        else:
            print(f"error: {error}", file=sys.stderr)
        return _BAD_INPUT
    return 0


def _explain_on_spark(options: argparse.Namespace, sql: str, overrides: dict[str, str]) -> None:
    """Explains with the embedded warehouse's tables.

    If Hive rejects a statement that Spark accepts, prints the plan of a run, without Hive's stages.
    """
    from airflow_hive_opt.spark.application.application import plan_on_spark
    from airflow_hive_opt.spark.application.request import Request
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
        spark_session,
    )

    warehouse = options.warehouse or default_warehouse()
    try:
        with spark_session("airflow-hive-opt explain", embedded_conf(warehouse)) as session:
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
                    request = Request.of(sql, overrides)
                except ValueError as wrong:
                    raise _UsageError(str(wrong)) from wrong
                planned = plan_on_spark(session, catalog, request)
                print(f"note: Hive would reject this, Spark runs it: {error}", file=sys.stderr)
                as_json = options.format == "json"
                print(json.dumps(to_json(planned), indent=1) if as_json else to_text(planned))
    except SparkStartError as error:
        raise _UsageError(str(error)) from error


def _sweep(options: argparse.Namespace) -> int:
    from datetime import datetime, timezone

    from upath import UPath

    from airflow_hive_opt.runtime.cleaning import age, older_than

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


def _prune(options: argparse.Namespace) -> int:
    return _on_spark(options, only_prune=True)


def _run(options: argparse.Namespace) -> int:
    return _on_spark(options, only_prune=False)


def _on_spark(options: argparse.Namespace, only_prune: bool) -> int:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from upath import UPath

    from airflow_hive_opt.runtime.descriptor import DescriptorError, query_digest
    from airflow_hive_opt.runtime.report import headline, keep_report
    from airflow_hive_opt.spark.application.application import join, prune
    from airflow_hive_opt.spark.application.completion import completed
    from airflow_hive_opt.spark.application.request import Request
    from airflow_hive_opt.spark.catalog.connect_catalog import catalog_of
    from airflow_hive_opt.spark.session.error_text import in_words
    from airflow_hive_opt.spark.session.java import SparkStartError
    from airflow_hive_opt.spark.session.session import (
        default_warehouse,
        embedded_conf,
        spark_session,
    )

    try:
        request = Request.of(
            _sql(options),
            _pairs(options.set),
            max_keys=options.max_keys,
            max_key_bytes=options.max_key_bytes,
            hold_snapshots=options.hold_snapshots,
            show_rows=0 if only_prune else options.rows + 1,
        )
    except ValueError as error:
        raise _UsageError(str(error)) from error
    warehouse = options.warehouse or default_warehouse()
    default = warehouse / "descriptors" / f"{query_digest(request.sql, {})[:16]}.json"
    path = UPath(options.descriptor or default)
    conf = {**embedded_conf(warehouse), **_pairs(options.conf)}
    try:
        with spark_session("airflow-hive-opt", conf) as session:
            try:
                catalog = catalog_of(session)
                report = prune(session, request, path, only_prune, catalog)
                if only_prune:
                    print(json.dumps(report.summary(), indent=1))
                else:
                    result = join(session, request, report, path)
                    keep_report(completed(request, result, catalog), path)
                    _print_rows(result.columns, result.rows[: options.rows])
                    if len(result.rows) > options.rows:
                        print(f"... and more: these are the first {options.rows}", file=sys.stderr)
                print(headline(report.descriptor), file=sys.stderr)
                return 0
            # inside the session: after Spark has ended, its errors have no messages
            except (DescriptorError, PySparkException, Py4JError) as error:
                print(f"error: {in_words(error)}", file=sys.stderr)
                return _FAILED
    except (PlanError, SparkStartError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_INPUT


def _print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if columns:
        print("\t".join(columns))
    for row in rows:
        print("\t".join("NULL" if value is None else str(value) for value in row))


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
