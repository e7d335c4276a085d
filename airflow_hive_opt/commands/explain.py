"""``airflow-hive-opt explain``: one statement, or a file of statements in one process."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from airflow_hive_opt.commands.arguments import (
    BAD_INPUT,
    UsageError,
    add_statement,
    pairs,
    statement_of,
    switches_of,
    whole_log,
)
from airflow_hive_opt.commands.statement_check import check_explained, check_statement, show_error
from airflow_hive_opt.explain.on_spark import SparkWork
from airflow_hive_opt.explain.plan_text import (
    Explanation,
    error_to_json,
    explain,
    explanation_to_json,
    explanation_to_text,
    to_json,
    to_text,
)
from airflow_hive_opt.hive.compiler import compile_statement
from airflow_hive_opt.hive.explain.graph_text import draw, mermaid
from airflow_hive_opt.hive.graph.operator_graph import OperatorGraph
from airflow_hive_opt.rewriting import Rewriting
from airflow_hive_opt.statement.catalog import Catalog, JsonCatalog
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.precheck import check_tables, with_values
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import Settings
from airflow_hive_opt.statement.switches import Switches

FORMATS = ("text", "json", "mermaid", "html")


def add(commands: Any) -> None:
    """Adds the command to the subparsers."""
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
    add_statement(explain)
    explain.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    if options.batch is not None:
        given = options.sql, options.file, options.catalog, options.set, options.param
        if any(given) or switches_of(options):
            raise UsageError("--batch takes statements, tables and settings from its file alone")
        try:
            with options.batch.open(encoding="utf-8") as lines:
                return 0 if explain_batch(lines, sys.stdout) else BAD_INPUT
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read {options.batch}: {error}") from error
    sql, overrides, parameters = statement_of(options), pairs(options.set), pairs(options.param)
    show = _shown(options)
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
        return BAD_INPUT
    return 0


def _shown(options: argparse.Namespace, **on_spark: Any) -> Callable[..., Iterator[str]]:
    """The function that explains a statement in the form that the user wants."""
    switches = switches_of(options)
    if options.stage_by_rule:
        return stage_by_rule
    return partial(explain_one, form=options.format, switches=switches, **on_spark)


def _explain_on_spark(options: argparse.Namespace, sql: str, overrides: dict[str, str]) -> None:
    """Explains with the embedded warehouse's tables.

    If Hive rejects a statement that Spark accepts, prints the plan of a run, without Hive's stages.
    """
    from airflow_hive_opt.documents.job import Job
    from airflow_hive_opt.spark.application.planning import plan_on_spark
    from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
    from airflow_hive_opt.spark.local_task.correlate import (
        StatisticsCatalog,
        correlate,
        words_of,
        work_on_spark,
    )
    from airflow_hive_opt.spark.session.embedded_warehouse import default_warehouse, embedded_conf
    from airflow_hive_opt.spark.session.java import SparkStartError
    from airflow_hive_opt.spark.session.session import has_spark, spark_session

    warehouse = options.warehouse or default_warehouse()
    if not has_spark():
        check_explained(sql, warehouse)
    conf = {**embedded_conf(warehouse), **whole_log(options)}
    try:
        with spark_session("airflow-hive-opt explain", conf) as session:
            catalog = SparkCatalog(session)
            work = partial(work_on_spark, session)
            rewritten = partial(correlate, session, catalog)
            show = _shown(options, measure=work, correlate=rewritten)
            try:
                print(*show(sql, StatisticsCatalog(catalog, words_of(sql)), overrides), sep="\n")
            except PlanError as error:
                try:
                    job = Job(sql, hive_conf=overrides, switches=switches_of(options))
                except ValueError as wrong:
                    raise UsageError(str(wrong)) from wrong
                _warn(job.settings.warnings)
                planned = plan_on_spark(session, catalog, job)
                print(f"note: Hive would reject this, Spark runs it: {error}", file=sys.stderr)
                as_json = options.format == "json"
                print(json.dumps(to_json(planned), indent=1) if as_json else to_text(planned))
    except SparkStartError as error:
        raise UsageError(str(error)) from error


def explain_one(
    script: str,
    catalog: Catalog,
    overrides: Mapping[str, object],
    form: str,
    measure: Callable[[str], SparkWork | None] | None = None,
    correlate: Callable[[str, Settings], Rewriting] | None = None,
    switches: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """The output for one statement; warnings go to stderr. Raises :class:`PlanError`."""
    found = explain(script, catalog, overrides, measure, correlate, switches)
    _warn(found.warnings)
    if form == "json":
        yield json.dumps(explanation_to_json(found), indent=1)
    elif form == "mermaid":
        yield mermaid(found.hive)
    elif form == "html":
        yield _page(found, script)
    else:
        yield explanation_to_text(found)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _page(found: Explanation, script: str) -> str:
    # late: the models of the pages take longer to load than a statement to plan
    from airflow_hive_opt.pages.html_file import NotBuiltError, html_file
    from airflow_hive_opt.pages.planned import instance_of_plan

    try:
        return html_file(instance_of_plan(found, script), (), "plan")
    except NotBuiltError as error:
        raise PlanError("INPUT", str(error)) from None


def stage_by_rule(script: str, catalog: Catalog, overrides: Mapping[str, object]) -> Iterator[str]:
    """The operator graph after each rule that changed it. Raises :class:`PlanError`."""
    own, sql = split_settings(script)
    drawings: list[tuple[str, str]] = []

    def watch(rule: str, graph: OperatorGraph) -> None:
        drawing = draw(graph)
        if not drawings or drawings[-1][1] != drawing:
            drawings.append((rule, drawing))

    compile_statement(sql, catalog, Settings.of({**overrides, **own}), watch)
    for rule, drawing in drawings:
        yield f"-- {rule}\n{drawing}\n"


def explain_batch(lines: Iterable[str], out: TextIO) -> bool:
    """Explains one case per line as a JSON object each; returns false if a line is invalid."""
    sound = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            if not isinstance(case, dict) or not isinstance(case.get("sql"), str):
                raise TypeError("the line must be a JSON object with a text for sql")
            overrides, switches = (dict(case.get(name) or {}) for name in ("set", "switches"))
            Switches.of(switches)
            catalog = JsonCatalog.of_documents(case.get("tables") or ())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            sound = False
            found = case.get("id") if isinstance(case := _loaded(line), dict) else None
            message = f"line {number} of the batch can't be read: {error}"
            answer = {"id": found, **error_to_json(PlanError("INPUT", message))}
        else:
            answer = {"id": case.get("id"), **_answer(case["sql"], catalog, overrides, switches)}
        print(json.dumps(answer), file=out)
    return sound


def _loaded(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _answer(
    sql: str, catalog: Catalog, overrides: Mapping[str, object], switches: Mapping[str, object]
) -> dict[str, object]:
    try:
        return explanation_to_json(explain(sql, catalog, overrides, switches=switches))
    except PlanError as error:
        return error_to_json(error)
    except Exception as error:  # noqa: BLE001 - one statement must not stop the others
        message = f"the planner failed on this statement: {type(error).__name__}: {error}"
        return error_to_json(PlanError("INTERNAL", message))
