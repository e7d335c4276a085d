"""EXPLAIN in its forms, SET lines, batches, and how long it takes."""

from __future__ import annotations

import io
import json
import sys

import pytest

from airflow_hive_opt.commands.explain import explain_batch, stage_by_rule
from airflow_hive_opt.explain.plan_text import explain, explanation_to_json, explanation_to_text
from airflow_hive_opt.hive.explain.graph_text import mermaid
from airflow_hive_opt.statement.catalog import JsonCatalog
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.example_catalog import CATALOG

SQL = "select a.key, count(1) from src a join src1 b on a.key = b.key group by a.key"


def test_the_text_explanation_has_the_form_of_hives():
    text = explanation_to_text(explain(SQL, CATALOG))
    assert text.startswith("STAGE DEPENDENCIES:\n  Stage-1 is a root stage\n")
    for line in (
        "    Map Reduce Local Work",
        "Map Join Operator",
        "Inner Join 0 to 1",
        "HashTable Sink Operator",
        "Reduce Operator Tree:",
        "Group By Operator",
    ):
        assert line in text


def test_the_mermaid_graph_shows_a_conditional_task_and_its_branches():
    found = explain(SQL, CATALOG, {"hive.auto.convert.join.noconditionaltask": "false"})
    drawing = mermaid(found.hive)
    assert drawing.startswith("flowchart TD\n")
    assert drawing.count("-.->") == 3


def test_the_job_after_a_conditional_task_depends_on_all_its_branches():
    settings = {"hive.auto.convert.join.noconditionaltask": "false"}
    stages = explanation_to_json(explain(SQL, CATALOG, settings))["stages"]
    assert [stage["kind"] for stage in stages] == [
        "Conditional",
        "LocalWork",
        "MapReduce",
        "LocalWork",
        "MapReduce",
        "MapReduce",
        "MapReduce",
        "Fetch",
    ]
    assert len(stages[6]["depends_on"]) == 3


def test_set_lines_are_applied_and_unknown_settings_warn():
    script = "SET hive.auto.convert.join=false;\nset hive.optimize.corelation = true;\n" + SQL
    found = explain(script, CATALOG)
    assert explanation_to_json(found)["map_reduce"] == 2
    assert found.warnings == (
        "unknown setting hive.optimize.corelation, did you mean hive.optimize.correlation?",
    )


def test_errors_after_set_lines_have_the_line_of_the_script():
    with pytest.raises(PlanError) as raised:
        explain("SET hive.auto.convert.join=false;\nselect nosuch from src", CATALOG)
    assert (raised.value.line, raised.value.column) == (2, 8)


def test_stage_by_rule_lists_the_rules_that_changed_the_plan():
    sql = "select a.key from src a join src1 b on a.key = b.key where a.key > '5'"
    rules = [part.splitlines()[0] for part in stage_by_rule(sql, CATALOG, {})]
    assert rules == ["-- generate", "-- push_predicates"]


def test_explain_batch_answers_every_line():
    tables = [{"name": "default.src", "columns": [["key", "string"]], "total_bytes": 10}]
    cases = [
        {"id": 1, "sql": "select a.key from src a join src b on a.key=b.key", "tables": tables},
        {"id": 2, "sql": "select a.key from src a natural join src b", "tables": tables},
    ]
    out = io.StringIO()
    explain_batch(map(json.dumps, cases), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(each["id"], each["verdict"]) for each in answers] == [(1, "ok"), (2, "error")]
    assert answers[0]["local_work"] == 1
    assert answers[1]["code"] == "PARSE"


@pytest.mark.parametrize(
    "line",
    [
        "5",
        "null",
        "[]",
        '{"id": 1}',
        "no json",
        '{"id": 1, "sql": null}',
        '{"sql": "x", "set": [1]}',
        '{"sql": "select 1", "switches": {"prune": true}}',
    ],
)
def test_explain_batch_reports_a_bad_line_and_answers_the_others(line):
    case = json.dumps({"id": "a", "sql": "select 1", "tables": []})
    out = io.StringIO()
    assert not explain_batch([case, line, case], out)
    verdicts = [json.loads(answer) for answer in out.getvalue().splitlines()]
    assert [found["verdict"] for found in verdicts] == ["ok", "error", "ok"]
    assert verdicts[1]["code"] == "INPUT"
    assert "line 2" in verdicts[1]["message"]


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("value = 'abc' 'def'", ["value = 'abcdef'"]),
        ("not (key = 'x' or value = 'y')", ["key <> 'x'", "value <> 'y'"]),
    ],
)
def test_filters_are_shown_as_hive_reads_them(where, shown):
    found = explanation_to_json(explain(f"select key from src where {where}", CATALOG))
    assert [each["predicate"] for each in found["filters"]] == shown


@pytest.mark.parametrize(
    "sql",
    [
        "select current_date, current_timestamp from src",
        "create table n stored as orc as select key from src",
        "select ~5 from src where (key, value) in (('a', 'b'))",
        "select /*+ MAPJOIN(`b`) */ a.key from src a join src1 b on a.key = b.key",
        "select key from src;;",
        "/* head */ set hive.auto.convert.join = false; select key from src",
        "select key from src where " + " and ".join(["key = 'a'"] * 2000),
    ],
)
def test_forms_of_queries_that_hive_plans_are_planned(sql):
    assert explanation_to_json(explain(sql, CATALOG))["verdict"] == "ok"


@pytest.mark.parametrize(
    "sql",
    [
        "select key from src where " + "(" * 900 + "key = 'a'" + ")" * 900,
        " union all ".join(["select key from src"] * 3000),
        "select " + "not " * 5000 + "true from src",
    ],
)
def test_a_statement_that_is_nested_too_deeply_is_an_error(sql):
    with pytest.raises(PlanError, match="nested too deeply"):
        explain(sql, CATALOG)


def test_a_view_that_reads_itself_is_an_error():
    tables = [{"name": "v", "columns": [["x", "int"]], "view": "select x from v"}]
    with pytest.raises(PlanError, match="nested too deeply"):
        explain("select x from v", JsonCatalog.of_documents(tables))


@pytest.mark.parametrize(
    "sql",
    [
        "from src a join src1 b on a.key = b.key select a.key",
        "from src insert overwrite table t1 select key insert overwrite table t2 select value",
        "select transform(key) using 'cat' as (k) from src",
        "from (from src map key using 'cat' as k cluster by k) m select m.k",
        "select key, value from src distribute by key sort by value desc",
        "select key, x from src lateral view explode(array(1, 2)) e as x",
        "with q as (select key from src) select a.key from q a join src1 b on a.key = b.key",
        "select `key` from `src` union all select `key` from src1",
    ],
)
def test_syntax_that_only_hive_has_is_planned(sql: str):
    assert explanation_to_json(explain(sql, CATALOG))["verdict"] == "ok"


def test_a_view_is_planned_as_its_query():
    document = {
        "name": "default.v",
        "columns": [["k", "string"]],
        "view": "select key from src where value > 'v'",
    }
    view = JsonCatalog.of_documents([document]).table("v")
    catalog = JsonCatalog({**CATALOG.tables, "default.v": view})
    sql = "select v.k from v join src1 b on v.k = b.key where v.k > '5'"
    found = explanation_to_json(explain(sql, catalog))
    assert sorted((each["alias"], each["predicate"]) for each in found["filters"]) == [
        ("b", "key > '5'"),
        ("src", "key > '5'"),
        ("src", "value > 'v'"),
    ]


@pytest.mark.parametrize("mark", [True, "", {}])
def test_a_view_without_its_query_fails_only_its_readers(mark):
    tables = [
        {"name": "default.v", "view": mark},
        {"name": "default.t", "columns": [["k", "string"]], "total_bytes": 9},
        {"name": "default.w", "columns": [["k", "string"]], "view": "select k from v"},
    ]
    statements = ["select k from t", "select t.k from t join v on t.k = v.k", "select k from w"]
    lines = [
        json.dumps({"id": number, "sql": sql, "tables": tables})
        for number, sql in enumerate([*statements, "select k from t"])
    ]
    out = io.StringIO()
    assert explain_batch(lines, out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each["verdict"] for each in answers] == ["ok", "error", "error", "ok"]
    for answer in answers[1:3]:
        assert answer["code"] == "INPUT"
        assert "the query of the view default.v" in answer["message"]
    assert (answers[1]["line"], answers[1]["column"]) == (1, 24)


def _joined(tables: int) -> str:
    joins = "".join(
        f" join src t{at} on t{at - 1}.{'key' if at % 2 else 'value'} = t{at}.key"
        for at in range(1, tables)
    )
    return f"select t0.key from src t0{joins} where t0.value > 'v'"


def _calls(tables: int, conditional: str) -> int:
    """The number of function calls that EXPLAIN of a join of so many tables makes."""
    calls = 0

    def count(frame, event, argument) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        explain(_joined(tables), CATALOG, {"hive.auto.convert.join.noconditionaltask": conditional})
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("conditional", ["true", "false"])
def test_the_work_of_planning_grows_in_proportion_to_the_tables(conditional: str):
    _calls(3, conditional)  # fills caches
    six = _calls(6, conditional)
    assert six < 30_000
    assert _calls(12, conditional) < 2.5 * six


def test_a_window_clause_is_planned():
    sql = "select key, rank() over w from src window w as (partition by key order by value)"
    found = explanation_to_json(explain(sql, CATALOG))
    assert [stage["kind"] for stage in found["stages"]] == ["MapReduce", "Fetch"]


@pytest.mark.parametrize(
    ("sql", "line", "column", "number"),
    [
        (
            "select\n /*+ MAPJOIN(a) */ a.key from src a left join src b on a.key = b.key",
            2,
            2,
            10057,
        ),
        ("\n  select a.key from src a join src1 b", 2, 3, 40000),
        ("select transform(key) using 'cat' as (a int", 1, 44, None),
        (
            "select 1 from src a\nwhere exists (select 1 from src1 b where a.key > b.key)",
            2,
            14,
            10250,
        ),
    ],
)
def test_rejected_statements_have_a_line_a_column_and_hives_number(sql, line, column, number):
    settings = {"hive.ignore.mapjoin.hint": "false"}
    with pytest.raises(PlanError) as caught:
        explain(sql, CATALOG, settings)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.number == number


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ([("1", 4), ("2", 0)], None),
        ([("1", 4), ("2", 1)], "default.p, partition 2, has 1 files for 4 buckets"),
        ([], None),
    ],
)
def test_partitions_whose_files_do_not_match_the_buckets_are_named(partitions, expected):
    buckets = {"columns": ["key"], "count": 4, "sort": ["key"]}
    documents = [
        {"name": "t", "columns": [["key", "int"]], "buckets": buckets, "files": 4},
        {
            "name": "p",
            "columns": [["key", "int"]],
            "partition_columns": [["ds", "string"]],
            "buckets": buckets,
            "partitions": [{"values": [ds], "files": files} for ds, files in partitions],
        },
    ]
    merge = {
        "hive.auto.convert.sortmerge.join": "true",
        "hive.optimize.bucketmapjoin.sortedmerge": "true",
    }
    sql, catalog = (
        "select t.key from t join p on t.key = p.key",
        JsonCatalog.of_documents(documents),
    )
    if expected is None:
        found = explanation_to_json(explain(sql, catalog, merge))
        assert [join["kind"] for join in found["joins"]] == ["SortMergeBucketMapJoin"]
    else:
        with pytest.raises(PlanError, match=expected) as caught:
            explain(sql, catalog, merge)
        assert caught.value.number == 10141


def test_the_text_explanation_shows_the_streamed_table():
    sql = "select /*+ STREAMTABLE(a) */ a.key from src a join src1 b on a.key = b.key"
    text = explanation_to_text(explain(sql, CATALOG, {"hive.auto.convert.join": "false"}))
    assert "Streamed Input: 0" in text
