"""``airflow-hive-opt explain``: one statement, or a file of statements in one process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TextIO

from airflow_hive_opt.explain.on_spark import SparkWork
from airflow_hive_opt.explain.plan_text import (
    Explanation,
    error_to_json,
    explain,
    explanation_to_json,
    explanation_to_mermaid,
    explanation_to_text,
)
from airflow_hive_opt.hive.compiler import compile_statement
from airflow_hive_opt.hive.explain.graph_text import draw
from airflow_hive_opt.hive.graph.operator_graph import OperatorGraph
from airflow_hive_opt.rewriting import Rewriting
from airflow_hive_opt.statement.catalog import Catalog, JsonCatalog
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import Settings

FORMATS = ("text", "json", "mermaid", "html")


def explain_one(
    script: str,
    catalog: Catalog,
    overrides: Mapping[str, object],
    form: str,
    measure: Callable[[str], SparkWork | None] | None = None,
    correlate: Callable[[str, Settings], Rewriting] | None = None,
) -> Iterator[str]:
    """The output for one statement; warnings go to stderr. Raises :class:`PlanError`."""
    found = explain(script, catalog, overrides, measure, correlate)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if form == "json":
        yield json.dumps(explanation_to_json(found), indent=1)
    elif form == "mermaid":
        yield explanation_to_mermaid(found)
    elif form == "html":
        yield _page(found, script)
    else:
        yield explanation_to_text(found)


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
    """Explains one case per line and prints a JSON object for each; false if a line is invalid."""
    sound = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            if not isinstance(case, dict) or not isinstance(case.get("sql"), str):
                raise TypeError("an object with a text for sql is expected")
            overrides = dict(case.get("set") or {})
            catalog = JsonCatalog.of_documents(case.get("tables") or ())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            sound = False
            found = case.get("id") if isinstance(case := _loaded(line), dict) else None
            message = f"line {number} of the batch is no case: {error}"
            answer = {"id": found, **error_to_json(PlanError("INPUT", message))}
        else:
            answer = {"id": case.get("id"), **_answer(case["sql"], catalog, overrides)}
        print(json.dumps(answer), file=out)
    return sound


def _loaded(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _answer(sql: str, catalog: Catalog, overrides: Mapping[str, object]) -> dict[str, object]:
    try:
        return explanation_to_json(explain(sql, catalog, overrides))
    except PlanError as error:
        return error_to_json(error)
    except Exception as error:  # noqa: BLE001 - one statement must not stop the others
        message = f"the planner failed on this statement: {type(error).__name__}: {error}"
        return error_to_json(PlanError("INTERNAL", message))
