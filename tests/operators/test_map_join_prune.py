"""The operator as a task runs it, on real Spark and without Airflow's database."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)

from airflow_hive_opt.documents.descriptor import decode
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.airflow_compat import TAKES_PARTITIONS
from airflow_hive_opt.provider.connections import deployment_of
from airflow_hive_opt.provider.embedded import embedded_settings
from tests.operators.star_tables import make_star
from tests.versions.installed import needs_airflow

RUN_ID = "manual__2026-01-31T00:00:00+00:00"
SQL = "SELECT f.id, f.p FROM op.fact f JOIN op.keys k ON f.p = k.p AND k.id < {{ params.below }}"


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    make_star(spark, "op")
    spark.sql("CREATE TABLE op.result (id INT, p INT) STORED AS PARQUET")
    yield
    spark.sql("DROP DATABASE op CASCADE")


@pytest.fixture
def context():
    pushed = {}
    instance = SimpleNamespace(
        dag_id="d:ag", run_id=RUN_ID, task_id="task", map_index=-1, try_number=2, pushed=pushed
    )
    instance.xcom_push = lambda key, value: pushed.update({key: value})
    return {"ti": instance, "params": {"below": 3}}


def run(context, tmp_path, **options):
    options = {"sql": SQL, "descriptor_path": str(tmp_path), **options}
    operator = MapJoinPruneOperator(task_id="task", **options)
    operator.render_template_fields(context)
    return operator.execute(context)


def test_the_summary_and_the_log_tell_what_was_pruned(spark, context, tmp_path, capsys):
    summary = run(context, tmp_path)
    assert summary["kept"] == 3
    assert summary["total"] == 10
    assert summary["reason"] == "PRUNED"
    (decision,) = summary["decisions"]
    assert decision["table"] == "op.fact"
    assert (decision["reason"], decision["path"], decision["kept"]) == ("PRUNED", "fast", 3)
    log = capsys.readouterr().out.strip()
    assert "f     op.fact  3 of 10     PRUNED (fast)" in log
    last = log.splitlines()[-1]
    assert "kept 3 of 10 partitions (70.0 % pruned): fact.p by 3 keys of keys" in last


def test_each_attempt_of_the_operator_has_its_own_descriptor(spark, context, tmp_path):
    first = run(context, tmp_path)["uri"]
    context["ti"].try_number = 3
    second = run(context, tmp_path)["uri"]
    assert first != second
    for uri in (first, second):
        assert uri.startswith(str(tmp_path))
        assert ":" not in uri.removeprefix("file:")
        assert "+" not in uri


def test_the_operator_writes_the_result_table(spark, context, tmp_path):
    run(context, tmp_path, sql="INSERT OVERWRITE TABLE op.result " + SQL)
    assert sorted(map(tuple, spark.table("op.result").collect())) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("name", ["q.sql", "q.hql"])
def test_a_sql_file_is_rendered_as_a_template(context, tmp_path, name):
    (tmp_path / name).write_text(SQL)
    with DAG("d", template_searchpath=str(tmp_path)) as dag:
        operator = MapJoinPruneOperator(task_id="task", sql=name)
    operator.render_template_fields(context, dag.get_template_env())
    assert operator.sql.endswith("k.id < 3")


def test_parameters_conf_and_hive_conf_reach_the_planner(spark, context, tmp_path, capsys):
    summary = run(
        context,
        tmp_path,
        sql="SELECT f.id FROM op.fact f JOIN op.keys k ON f.p = k.p AND k.id < :below",
        parameters={"below": 4},
        conf={"spark.sql.shuffle.partitions": 3},
        hive_conf={"hive.mapjoin.smalltable.filesize": "{{ 1 }}"},
    )
    assert summary["reason"] == "KEY_SOURCE_NOT_SMALL"
    (advice,) = [line for line in capsys.readouterr().out.splitlines() if "More: " in line]
    assert "KEY_SOURCE_NOT_SMALL: Run ANALYZE TABLE ... COMPUTE STATISTICS on the small" in advice
    assert "/hive_opt/pages/reasons#KEY_SOURCE_NOT_SMALL" in advice


def test_on_empty_runs_skips_or_fails_if_no_partition_matches(spark, context, tmp_path):
    context["params"]["below"] = -1
    assert run(context, tmp_path)["kept"] == 0
    with pytest.raises(AirflowSkipException):
        run(context, tmp_path, on_empty="skip")
    with pytest.raises(AirflowFailException):
        run(context, tmp_path, on_empty="fail")


def test_a_run_above_max_partitions_fails_without_retries(spark, context, tmp_path, capsys):
    with pytest.raises(AirflowFailException, match="max_partitions is 2"):
        run(context, tmp_path, max_partitions=2)
    # and what it would have read can be looked at
    pushed = context["ti"].pushed
    assert Path(pushed["hive_opt_descriptor"]).exists()
    assert pushed["hive_opt_figures"]["stopped"] == "3 partitions, limit 2"
    assert pushed["hive_opt_summary"]["decisions"][0]["kept"] == 3
    assert "return_value" not in pushed
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert "kept 3 of 10 partitions (70.0 % pruned): fact.p by 3 keys of keys" in last


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sql": "SELECT\n  x y z FROM t"}, "line 2, column 7"),
        ({"sql": "SELECT a FROM op.nowhere"}, "line 1, column 48: there is no table op.nowhere"),
        ({"sql": "SELECT nope FROM op.fact"}, "line 1, column 41: there is no column nope"),
        (
            {"sql": "SELECT p FROM op.fact f JOIN op.keys k ON f.p = k.p"},
            "line 1, column 41: column p is ambiguous",
        ),
        ({"conn_id": "no_such"}, "there is no connection 'no_such'"),
        ({"conn_id": "postgres"}, "of the type 'postgres': a statement runs on a 'spark'"),
        ({"descriptor_path": "/proc/nowhere"}, "can't write /proc/nowhere"),
        ({"descriptor_path": "nostore://x/y"}, "nostore"),
    ],
)
def test_bad_input_fails_with_one_clear_message(
    spark, context, tmp_path, monkeypatch, options, message
):
    monkeypatch.setenv("AIRFLOW_CONN_POSTGRES", "postgres://somewhere")
    spark.sql("INSERT OVERWRITE TABLE op.result VALUES (4, 2)")
    insert = "INSERT OVERWRITE TABLE op.result " + options.get("sql", SQL)
    with pytest.raises(AirflowException, match=message):
        run(context, tmp_path, **{**options, "sql": insert})
    assert [tuple(row) for row in spark.table("op.result").collect()] == [(4, 2)]


def test_the_error_of_a_statement_that_spark_rejects_is_sparks(spark, context, tmp_path):
    with pytest.raises(AirflowException, match="no_such_function"):
        run(context, tmp_path, sql="SELECT no_such_function(f.id) FROM op.fact f")


@pytest.mark.parametrize("name", ["on_empty", "on_no_prune"])
def test_an_unknown_value_of_a_gate_is_refused_when_the_dag_is_parsed(name):
    with pytest.raises(ValueError, match=f"{name} must be one of run, "):
        MapJoinPruneOperator(task_id="task", sql="SELECT 1", **{name: "stop"})


@pytest.mark.parametrize("bound", [{"max_keys": 0}, {"max_partitions": -1}])
def test_a_limit_below_its_minimum_is_refused_when_the_dag_is_parsed(bound):
    with pytest.raises(ValueError, match=next(iter(bound))):
        MapJoinPruneOperator(task_id="task", sql="SELECT 1", **bound)


def test_a_metastore_connection_sets_the_metastore_uris_of_spark(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_TABLES", "hive-metastore://a%2Cb:9083")
    conf = embedded_settings("local[*]", "tables", {})
    assert conf["spark.hadoop.hive.metastore.uris"] == "thrift://a:9083,thrift://b:9083"
    with pytest.raises(AirflowFailException, match="there is no connection 'none'"):
        embedded_settings("local[*]", "none", {})


def test_a_local_spark_connection_sets_the_master(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_ALSO", '{"conn_type": "spark", "host": "local[3]"}')
    masters = {
        conn_id: embedded_settings(deployment_of(conn_id).address, None, {})["spark.master"]
        for conn_id in ("also", None)
    }
    assert masters == {"also": "local[3]", None: "local[*]"}


@needs_airflow("3.0")
@pytest.mark.parametrize(
    "refused",
    [
        "SELECT nope FROM op.fact",
        "SELECT id, p FROM op.fact WHERE p = int(raise_error('PLAN_VALIDATION_FAILED'))",
    ],
)
def test_a_select_that_ran_without_pruning_is_not_reported_as_pruned(
    spark, context, tmp_path, capsys, monkeypatch, refused
):
    """Spark refuses the restricted statement: when it reads it, and when it plans it."""
    from airflow.providers.common.compat.sdk import Asset
    from airflow.providers.openlineage.extractors.base import DefaultExtractor
    from airflow.sdk.execution_time.context import OutletEventAccessors

    application = "airflow_hive_opt.spark.application.run"
    monkeypatch.setattr(f"{application}.without_joins", lambda *_: None)
    monkeypatch.setattr("airflow_hive_opt.spark.map_join.texts.restrict", lambda *_: refused)
    asset = Asset("result")
    context["outlet_events"] = OutletEventAccessors()
    options = {"outlets": [asset], "descriptor_path": str(tmp_path)}
    if TAKES_PARTITIONS:
        options["partition_keys_of"] = "fact"
    operator = MapJoinPruneOperator(task_id="task", sql=SQL, **options)
    operator.render_template_fields(context)
    summary = operator.execute(context)
    assert (summary["reason"], summary["kept"]) == ("PASSED_THROUGH", 0)
    assert ["way" in each for each in summary["decisions"]] == [False]
    assert operator.statement == operator.sql
    log = capsys.readouterr().out
    assert {f"{n}\t{n}" in log for n in range(3)} == {True}
    assert (
        "pruned nothing: the statement reads all partitions, PASSED_THROUGH" in log.splitlines()[-1]
    )
    # neither the page, nor the events, nor lineage go by the list that was left aside
    descriptor = decode(Path(summary["uri"]).read_bytes())
    assert (descriptor.digest, descriptor.targets) == (summary["digest"], ())
    if TAKES_PARTITIONS:
        assert context["outlet_events"][asset].partition_keys == set()
    found = DefaultExtractor(operator).extract_on_complete(context["ti"])
    assert [(each.name, each.inputFacets) for each in found.inputs] == [
        ("op.fact", {}),
        ("op.keys", {}),
    ]


def test_openlineage_gets_the_tables_and_partitions_that_the_run_read(spark, context, tmp_path):
    from airflow.providers.openlineage.extractors.base import DefaultExtractor

    sql = "INSERT OVERWRITE TABLE op.result " + SQL
    operator = MapJoinPruneOperator(task_id="task", sql=sql, descriptor_path=str(tmp_path))
    operator.render_template_fields(context)
    operator.execute(context)
    found = DefaultExtractor(operator).extract_on_complete(context["ti"])
    assert [each.name for each in found.inputs] == ["op.fact", "op.keys"]
    assert [each.name for each in found.outputs] == ["op.result"]
    condition = found.inputs[0].inputFacets["subset"].inputCondition
    assert [each.identifier for each in condition.partitions] == ["p=0", "p=1", "p=2"]


@needs_airflow("3.3")
def test_asset_events_have_partition_keys_if_partition_keys_of_is_set(
    spark, context, tmp_path, capsys
):
    from airflow.providers.common.compat.sdk import Asset
    from airflow.sdk.execution_time.context import OutletEventAccessors

    asset = Asset("result")

    def event(**options):
        context["outlet_events"] = OutletEventAccessors()
        run(context, tmp_path, outlets=[asset], **options)
        return context["outlet_events"][asset]

    plain = event()
    assert (plain.extra["kept"], plain.partition_keys) == (3, set())
    assert event(partition_keys_of="fact").partition_keys == {"0", "1", "2"}
    other = event(partition_keys_of="keys")
    assert (other.extra["kept"], other.partition_keys) == (3, set())
    assert "the run pruned no scan of keys" in capsys.readouterr().out


def test_an_argument_that_needs_a_newer_airflow_is_refused_at_parsing(monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.provider.asset_events.TAKES_PARTITIONS", False)
    with pytest.raises(TypeError, match=r"partition_keys_of needs Airflow 3\.3"):
        MapJoinPruneOperator(task_id="task", sql=SQL, partition_keys_of="fact")
