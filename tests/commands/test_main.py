"""The command line: what it prints and with what it exits."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest
from upath import UPath

from airflow_hive_opt import __version__
from airflow_hive_opt.commands.main import main
from airflow_hive_opt.documents.descriptor import VERSION, decode
from airflow_hive_opt.documents.report import read_report, report_path

TABLES = {
    "tables": [
        {
            "name": "default.sales",
            "columns": [["item", "int"]],
            "partition_columns": [["ds", "string"]],
        },
        {"name": "default.days", "columns": [["ds", "string"], ["year", "int"]]},
    ]
}
SQL = "SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds WHERE d.year = 2000"
OFF = "hive.optimize.mapjoin.partition.pruning=false"


@pytest.fixture
def catalog(tmp_path) -> str:
    path = tmp_path / "tables.json"
    path.write_text(json.dumps(TABLES))
    return str(path)


def test_the_option_version_prints_the_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"airflow-hive-opt {__version__}\n"


def test_explain_prints_json(catalog, capsys):
    assert main(["explain", "--format", "json", "--catalog", catalog, SQL]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "ok"
    assert found["pruning"][0]["reason"] == "PRUNED"


def test_explain_reads_a_file_and_prints_text(catalog, tmp_path, capsys):
    path = tmp_path / "q.sql"
    path.write_text(SQL)
    assert main(["explain", "--catalog", catalog, "-f", str(path)]) == 0
    assert "s (default.sales): PRUNED" in capsys.readouterr().out


def test_explain_applies_settings_and_prints_warnings(catalog, capsys):
    assert main(["explain", "--catalog", catalog, "--set", OFF, "--set", "hive.x=1", SQL]) == 0
    printed = capsys.readouterr()
    assert "DISABLED" in printed.out
    assert "unknown setting hive.x, did you mean" in printed.err
    assert "warning: the argument partition_pruning replaces the setting hive.opti" in printed.err


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--no-partition-pruning"], "DISABLED"),
        (["--partition-pruning", "--set", OFF], "PRUNED"),
        (["--no-partition-pruning", "--set", OFF.replace("false", "true")], "DISABLED"),
    ],
)
def test_an_option_overrides_a_setting(catalog, capsys, given, reason):
    assert main(["explain", "--catalog", catalog, *given, SQL]) == 0
    assert f"s (default.sales): {reason}" in capsys.readouterr().out


def test_a_wrong_value_of_an_option_is_an_error(no_spark, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--max-keys", "x", SQL])
    assert ended.value.code == 2
    assert "argument --max-keys: invalid int value: 'x'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT a FROM", {"code": "PARSE", "line": 1}),
        ("SELECT nope FROM sales", {"code": "SEMANTIC", "line": 1, "column": 8}),
    ],
)
def test_explain_reports_wrong_sql_with_line_and_column(catalog, capsys, sql, error):
    assert main(["explain", "--catalog", catalog, "--format", "json", sql]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "error"
    assert error.items() <= found.items()
    assert main(["explain", "--catalog", catalog, sql]) == 2
    assert capsys.readouterr().err.startswith("error: line 1, column")


@pytest.fixture
def no_spark(monkeypatch):
    """Fails the test if a command starts Spark, or reads a metastore."""

    def started(*_):
        pytest.fail("Spark was started")

    session = "airflow_hive_opt.spark.session"
    monkeypatch.setattr(f"{session}.session.has_spark", lambda: False)
    monkeypatch.setattr(f"{session}.session._start", started)
    monkeypatch.setattr(f"{session}.derby.embedded_tables", started)


@pytest.mark.parametrize(
    ("command", "sql", "told"),
    [
        ("explain", "SELEC 1", "line 1, column 1: no statement begins with SELEC, did you mean "
         "SELECT?\n  SELEC 1\n  ^"),
        ("run", "SET a.b=1;\nSLECT 1", "line 2, column 1: no statement begins with SLECT, did you "
         "mean SELECT?\n  SLECT 1\n  ^"),
        ("explain", "SELECT a\n  FROM", "line 2, column 7: Hive expects more at the end\n"
         "  FROM\n      ^"),
        ("run", "SELECT :a", "the parameter :a has no value: add --param a=VALUE"),
        ("prune", "SELECT :a", "the parameter :a has no value: add --param a=VALUE"),
        ("explain", "SELECT :a", "the parameter :a has no value: add --param a=VALUE"),
    ],
)  # fmt: skip
def test_a_wrong_statement_is_found_before_spark_starts(no_spark, capsys, command, sql, told):
    assert main([command, sql]) == 2
    assert capsys.readouterr() == ("", f"error: {told}\n")


def test_a_missing_table_is_found_before_spark_starts(no_spark, monkeypatch, tmp_path, capsys):
    def embedded_tables(warehouse):
        assert warehouse == tmp_path
        return {"default": {"visits", "days"}, "dw": {"sales"}}

    monkeypatch.setattr("airflow_hive_opt.spark.session.derby.embedded_tables", embedded_tables)
    sql = "SELECT * FROM days JOIN vists USING (day)"
    assert main(["explain", "--warehouse", str(tmp_path), sql]) == 2
    assert capsys.readouterr().err == (
        "error: line 1, column 25: there is no table vists, did you mean visits?\n"
        f"  {sql}\n  {' ' * 24}^\n"
    )
    assert main(["explain", "--warehouse", str(tmp_path), "SELECT * FROM dw.other"]) == 2
    assert "there is no table dw.other\n" in capsys.readouterr().err


def test_a_table_missing_in_the_catalog_file_is_an_error_with_a_suggestion(catalog, capsys):
    assert main(["explain", "--catalog", catalog, "SELECT * FROM sale"]) == 2
    told = "error: line 1, column 15: there is no table sale, did you mean sales?\n"
    assert capsys.readouterr().err.startswith(told)


def test_the_help_has_no_markup(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "`" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stops", "code", "told"),
    [
        ([], 0, "no shared Spark runs: nothing to stop\n"),
        ([True, True], 0, "stopped: process 7\nstopped: process 7\n"),
        ([False], 1, "error: not stopped: process 7, in use by 2 tasks. Wait, or use --force\n"),
    ],
)
def test_session_stop_prints_what_it_stopped(monkeypatch, capsys, stops, code, told):
    found = [
        SimpleNamespace(
            is_alive=lambda: True,
            stop=lambda stopped=stopped: stopped,
            pid=lambda: 7,
            address=lambda: "there",
            tasks=lambda: 2,
        )
        for stopped in stops
    ]
    folder = "airflow_hive_opt.spark.session.shared_folder.SharedFolder"
    monkeypatch.setattr(folder, SimpleNamespace(all=lambda: found))
    assert main(["session", "stop"]) == code
    assert "".join(capsys.readouterr()) == told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the statement either as an argument or with -f FILE"),
        (["-f", "/nowhere.sql"], "can't read /nowhere.sql"),
        (["--set", "x", "SELECT 1"], "'x' is not NAME=VALUE"),
        (["--catalog", "/nowhere.json", "SELECT 1"], "can't read the catalog"),
    ],
)
def test_wrong_arguments_of_explain_are_errors(capsys, arguments, message):
    assert main(["explain", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_descriptors_delete_removes_old_files_only(tmp_path, capsys):
    old = tmp_path / "d" / "r" / "t" / "-1" / "1.json"
    kept = [
        tmp_path / "d" / "r" / "t" / "-1" / "2.json",
        tmp_path / "d" / "r" / "t" / "-1" / "notes.json",
        tmp_path / "d" / "1.json",
    ]
    endings = ("report.json", "keys.json", "partitions.json", "sql", "guarded.sql")
    beside = [old.with_name(f"1.{ending}") for ending in endings]
    beside += [old.with_name("1.3.json"), old.with_name("1.3.report.json")]  # of a hook's statement
    own = [old, *beside, old.with_name(".hive-opt-0123456789abcdef.tmp")]
    kept.append(old.with_name("notes.sql"))
    kept.append(old.with_name(".hive-opt-fedcba9876543210.tmp"))
    kept.append(old.with_name(".hive-opt-mine.tmp"))
    for path in (*own, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    for path in (*own, *kept[1:4], kept[5]):
        os.utime(path, (0, 0))
    command = ["descriptors", "delete", str(tmp_path), "--older-than", "30d"]
    assert main([*command, "--dry-run"]) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(map(str, own))
    assert old.exists()
    assert main(command) == 0
    assert capsys.readouterr().err == "9 files deleted\n"
    assert not any(path.exists() for path in own)
    assert all(path.exists() for path in kept)


@pytest.mark.parametrize(
    ("root", "age", "message"),
    [(".", "soon", "such as 30d, not 'soon'"), ("/no/where", "1d", "no folder /no/where")],
)
def test_wrong_arguments_of_descriptors_delete_are_errors(capsys, root, age, message):
    assert main(["descriptors", "delete", root, "--older-than", age]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS cli")
    frame = spark.range(10).selectExpr("CAST(id AS INT) id", "CAST(id AS INT) p")
    frame.coalesce(1).write.partitionBy("p").saveAsTable("cli.fact")
    frame.coalesce(1).write.saveAsTable("cli.keys")
    yield
    spark.sql("DROP DATABASE cli CASCADE")


JOIN = "SELECT f.id, NULL AS n FROM cli.fact f JOIN cli.keys k ON f.p = k.p AND k.id < 2 ORDER BY 1"


def test_run_prints_the_rows_and_the_headline(tables, tmp_path, capsys):
    assert main(["run", "--warehouse", str(tmp_path), JOIN]) == 0
    printed = capsys.readouterr()
    assert printed.out == "id\tn\n0\tNULL\n1\tNULL\n"
    assert printed.err == "kept 2 of 10 partitions (80.0 % pruned): fact.p by 2 keys of keys\n"


def test_param_binds_parameters_in_run_and_explain(tables, tmp_path, capsys):
    sql = JOIN.replace("k.id < 2", "k.id < :below")
    options = ["--warehouse", str(tmp_path), "--param", "below=3"]
    assert main(["run", *options, sql]) == 0
    assert capsys.readouterr().out == "id\tn\n0\tNULL\n1\tNULL\n2\tNULL\n"
    assert main(["explain", *options, sql]) == 0
    assert "f (cli.fact): PRUNED" in capsys.readouterr().out


@pytest.mark.parametrize("sql", ["CREATE TABLE cli.{} (a INT)", "DROP TABLE cli.{}", "SELECT 1"])
def test_run_says_if_the_statement_reads_no_partitioned_table(tables, tmp_path, capsys, sql):
    assert main(["run", "--warehouse", str(tmp_path), sql.format("made")]) == 0
    told = "nothing to prune: the statement reads no partitioned table\n"
    assert capsys.readouterr().err == told


def test_prune_writes_the_descriptor_and_prints_the_summary(tables, tmp_path, capsys):
    uri = str(tmp_path / "here.json")
    assert main(["prune", "--warehouse", str(tmp_path), "--descriptor", uri, JOIN]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 2
    assert json.loads((tmp_path / "here.json").read_text())["version"] == VERSION


def test_explain_asks_spark_without_a_catalog_file(tables, tmp_path, capsys):
    assert main(["explain", "--warehouse", str(tmp_path), JOIN]) == 0
    assert "f (cli.fact): PRUNED" in capsys.readouterr().out


def test_run_says_that_there_are_more_rows_than_it_prints(tables, tmp_path, capsys):
    assert main(["run", "--warehouse", str(tmp_path), "--rows", "1", JOIN]) == 0
    printed = capsys.readouterr()
    assert printed.out == "id\tn\n0\tNULL\n"
    assert "and more: these are the first 1" in printed.err


def test_explain_says_that_a_statement_passes_through(tables, tmp_path, capsys):
    assert main(["explain", "--warehouse", str(tmp_path), "FROM cli.fact |> LIMIT 1"]) == 0
    assert "the statement is written with pipes" in capsys.readouterr().out


def test_run_reports_failures_in_one_line(tables, tmp_path, capsys):
    assert main(["run", "--warehouse", str(tmp_path), "SELECT x FROM cli.fact"]) == 2
    told, *pointed = capsys.readouterr().err.splitlines()
    assert "line 1, column 8: there is no column x" in told
    assert pointed == ["  SELECT x FROM cli.fact", "         ^"]
    assert main(["run", "--warehouse", str(tmp_path), "SELECT f(id) FROM cli.fact"]) == 2
    assert capsys.readouterr().err.startswith("error: [UNRESOLVED_ROUTINE]")
    divided = f"{JOIN.partition(' ORDER')[0]} AND raise_error('no row') IS NULL"
    assert main(["run", "--warehouse", str(tmp_path), divided]) == 1
    assert "no row" in capsys.readouterr().err
    assert main(["run", "--warehouse", str(tmp_path), "--max-keys", "0", JOIN]) == 2
    assert capsys.readouterr().err == "error: max_keys must be at least 1, not 0\n"


def test_run_and_report_say_that_the_plain_statement_ran(tables, tmp_path, capsys, monkeypatch):
    """Spark rejects the pruned statement, so the plain one runs."""
    application = "airflow_hive_opt.spark.application.run"
    monkeypatch.setattr(f"{application}.without_joins", lambda *_: None)
    monkeypatch.setattr(
        "airflow_hive_opt.spark.map_join.texts.restrict", lambda sql, *_: f"{sql} oh no"
    )
    path = tmp_path / "here.json"
    assert main(["run", "--warehouse", str(tmp_path), "--descriptor", str(path), JOIN]) == 0
    printed = capsys.readouterr()
    assert printed.out == "id\tn\n0\tNULL\n1\tNULL\n"
    told = printed.err.splitlines()[-1]
    assert told.startswith("pruned nothing: the statement reads all partitions, PASSED_THROUGH")
    assert "PARSE_SYNTAX_ERROR" in told
    descriptor = decode(path.read_bytes())
    assert (descriptor.targets, len(descriptor.decisions)) == ((), 1)
    assert read_report(report_path(UPath(path))).summary["digest"] == descriptor.digest
    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out.startswith("pruned nothing: the statement reads all partitions")
