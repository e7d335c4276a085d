"""Wrong arguments: one sentence, as early as it can be said, and never again on a retry."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, XComArg

from airflow_hive_opt.documents.job import Outcome, Status
from airflow_hive_opt.operators.local_task import SWITCHES, LocalTaskOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.airflow_compat import mask_secret
from airflow_hive_opt.provider.outcome import log_outcome
from airflow_hive_opt.statement import switches
from airflow_hive_opt.statement.switches import Switches

SQL = "SELECT f.id, f.name FROM args.fact f JOIN args.keys k ON f.p = k.p"


@pytest.fixture(scope="module")
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS args")
    spark.sql("CREATE TABLE args.fact (id INT, name STRING) PARTITIONED BY (p INT) STORED AS ORC")
    spark.sql(
        "INSERT INTO args.fact SELECT CAST(id AS INT), concat('name', id), CAST(id % 5 AS INT) "
        "FROM range(40)"
    )
    spark.sql("CREATE TABLE args.keys STORED AS PARQUET AS SELECT 1 AS p")
    yield
    spark.sql("DROP DATABASE args CASCADE")


def context(params):
    instance = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1)
    instance.xcom_push = lambda key, value: None
    return {"ti": instance, "params": params}


def run(tmp_path, **options):
    found = context(options.pop("params", {}))
    operator = MapJoinPruneOperator(
        task_id="t", **{"sql": SQL, "descriptor_path": str(tmp_path), **options}
    )
    operator.render_template_fields(found)
    return operator.execute(found)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"sql": None}, "sql must be a statement"),
        ({"sql": ""}, "sql must be a statement"),
        ({"sql": 5}, "sql must be a statement"),
        ({"sql": [SQL]}, "sql must be a statement"),
        ({"parameters": [1]}, "parameters must be a dictionary"),
        ({"parameters": "a"}, "parameters must be a dictionary"),
        ({"hive_conf": "x"}, "hive_conf must be a dictionary"),
        ({"conf": ["a=b"]}, "conf must be a dictionary"),
        ({"max_keys": "10"}, "max_keys must be a whole number, not '10'"),
        ({"max_keys": True}, "max_keys must be a whole number"),
        ({"max_keys": 0}, "max_keys must be at least 1"),
        ({"max_key_bytes": 1.5}, "max_key_bytes must be a whole number"),
        ({"partition_pruning": "off"}, "partition_pruning must be true or false, not 'off'"),
        ({"planning_seconds": -1}, "planning_seconds must be a whole number of at least 0"),
        ({"hold_snapshots": "yes"}, "hold_snapshots must be True or False, not 'yes'"),
        ({"max_partitions": "x"}, "max_partitions must be a whole number"),
        ({"max_bytes": -1}, "max_bytes must be at least 0"),
        ({"show_rows": -1}, "show_rows must be at least 0"),
        ({"on_empty": "stop"}, "on_empty must be one of"),
    ],
)
def test_wrong_arguments_are_refused_when_the_dag_is_parsed(arguments, named):
    with pytest.raises(ValueError, match=named):
        MapJoinPruneOperator(**{"task_id": "t", "sql": SQL, **arguments})


def test_arguments_may_be_templates_or_outputs_of_other_tasks():
    with DAG("d"):
        other = LocalTaskOperator(task_id="o", sql=SQL)
        for number, value in enumerate(("{{ params.values }}", other.output)):
            made = MapJoinPruneOperator(
                task_id=f"t{number}",
                sql=other.output,
                parameters=value,
                conf=value,
                hive_conf=value,
                partition_pruning=value,
            )
            assert isinstance(made.sql, XComArg)


def test_all_planner_switches_are_arguments_of_the_operator():
    assert SWITCHES == switches.SWITCHES


@pytest.mark.parametrize("native", [False, True])
def test_planner_switches_may_be_templates(tmp_path, native):
    with DAG("d", render_template_as_native_obj=native):
        operator = MapJoinPruneOperator(
            task_id="t",
            sql=SQL,
            descriptor_path=str(tmp_path),
            partition_pruning="{{ params.prune }}",
            planning_seconds="{{ params.seconds }}",
        )
    found = context(params={"prune": False, "seconds": 7})
    operator.render_template_fields(found)
    expected = Switches(partition_pruning=False, planning_seconds=7)
    assert operator.job(found).settings.switches == expected


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"sql": "{{ params.none }}"}, "sql must be a statement once it is rendered"),
        ({"parameters": "{{ params.none }}"}, "parameters must be a dictionary"),
        ({"parameters": {1: 2}}, "parameters must be a dictionary with names for keys"),
        ({"parameters": {"a": object}}, "the parameter a must be text"),
        ({"parameters": {"a": 10**30}}, "the parameter a must be text"),
        (
            {"parameters": {"a": {1: 2, "b": 3}}},
            "the parameter a must be a dictionary with names for keys",
        ),
        ({"key_predicate": "{{ params.none }}"}, "key_predicate must be true or false, not ' '"),
        ({"hive_conf": {"hive.map.aggr": "maybe"}}, "hive.map.aggr must be true or false"),
        (
            {"hive_conf": {"hive.mapjoin.smalltable.filesize": "25MB"}},
            "hive.mapjoin.smalltable.filesize must be a whole number, not '25mb'",
        ),
        (
            {"hive_conf": {"hive.mapjoin.filesize": 1}},
            "unknown setting hive.mapjoin.filesize, did you mean hive.mapjoin.smalltable.filesize",
        ),
        ({"sql": f"SET hive.map.aggr=maybe;\n{SQL}"}, "hive.map.aggr must be true or false"),
        ({"sql": f"SET spark.sql.shuffle.partitions=x;\n{SQL}"}, "spark.sql.shuffle.partitions"),
        ({"conf": {"spark.sql.shuffle.partitions": "x"}}, "spark.sql.shuffle.partitions"),
        ({"sql": "SELECT nope FROM args.fact"}, "nope"),
        ({"sql": "SELECT * FROM args.missing"}, "args`?.`?missing"),
        ({"sql": "INSERT INTO args.keys SELECT 'a', 'b'"}, "args`?.`?keys"),
    ],
)
def test_wrong_rendered_arguments_fail_the_task_without_a_retry(
    spark, tables, tmp_path, arguments, named
):
    arguments = {"params": {"none": " "}, **arguments}
    with pytest.raises(AirflowFailException, match=named):
        run(tmp_path, **arguments)


def test_a_set_line_that_the_planner_does_not_know_is_accepted(spark, tables, tmp_path):
    assert run(tmp_path, sql=f"SET hive.exec.parallel=true;\n{SQL}")["kept"] == 1


@pytest.mark.parametrize(("show_rows", "shown"), [(None, 5), (0, 0), (2, 2)])
def test_the_log_shows_as_many_rows_as_show_rows(spark, tables, tmp_path, capsys, show_rows, shown):
    run(tmp_path, show_rows=show_rows)
    log = capsys.readouterr().out
    assert sum("\tname" in line for line in log.splitlines()) == shown + (shown > 0)
    assert ("id\tname" in log) is (shown > 0)


def test_the_configuration_sets_how_many_rows_the_log_shows(
    spark, tables, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SHOW_ROWS", "1")
    run(tmp_path)
    assert "the first 1 rows" in capsys.readouterr().out
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SHOW_ROWS", "few")
    with pytest.raises(AirflowFailException, match="show_rows must be a whole number"):
        run(tmp_path)


def test_secrets_in_rows_and_errors_are_masked(spark, tables, tmp_path, capsys):
    mask_secret("hunter2secret")
    run(tmp_path, sql="SELECT 'my hunter2secret' AS a", show_rows=1)
    run(tmp_path, sql="SELECT :password AS a", parameters={"password": "0penSesame"}, show_rows=1)
    log = capsys.readouterr().out
    assert "hunter2secret" not in log
    assert "0penSesame" not in log
    assert log.count("***") >= 2
    with pytest.raises(Exception, match=r"\*\*\*") as failed:
        run(tmp_path, sql="SELECT raise_error('hunter2secret') AS a", show_rows=1)
    assert "hunter2secret" not in str(failed.value)


def test_control_characters_in_values_are_escaped_in_the_log(spark, tables, tmp_path, capsys):
    run(
        tmp_path,
        sql="SELECT concat('a', chr(10), '::group::b', chr(27), '[31m', '\u2028') AS `x\ty`",
        show_rows=1,
    )
    log = capsys.readouterr().out
    assert r"a\n:\:group:\:b\x1b[31m\u2028" in log
    assert r"x\ty" in log
    assert "::group::" not in log


def test_a_secret_of_several_lines_is_masked_in_rows(capsys):
    secret = "-----BEGIN KEY-----\nabc\tdefghijk"
    mask_secret(secret)
    rows = (("1", f"before {secret} after"),)
    log = logging.getLogger("rows")
    log.addHandler(shown := logging.StreamHandler(sys.stdout))
    log.setLevel(logging.INFO)
    try:
        log_outcome(log, Outcome(Status.DONE, "done", None, ("a", "b"), rows))
    finally:
        log.removeHandler(shown)
    printed = capsys.readouterr().out
    assert "before *** after" in printed
    assert "abc" not in printed
