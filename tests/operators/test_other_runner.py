"""A local task with ``for_other_runner``: its XComs and files, the macro, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, AirflowSkipException

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.plugins.macros import restricted_sql
from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup
from tests.operators.star_tables import make_star
from tests.operators.test_dag import start  # noqa: F401 - a fixture
from tests.operators.test_split_form import context, rendered
from tests.versions.installed import needs_airflow

SQL = (
    "INSERT OVERWRITE TABLE other.result SELECT f.id, f.p FROM other.fact f "
    "JOIN other.keys k ON f.p = k.p AND k.id < {{ params.below }} -- its end\n;"
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    make_star(spark, "other", rows=6)
    spark.sql("CREATE TABLE other.result (id INT, p INT) STORED AS PARQUET")
    yield
    spark.sql("DROP DATABASE other CASCADE")


def look(tmp_path, sql=SQL, **options):
    """The output of the local task, and its other XComs."""
    found = context()
    operator = LocalTaskOperator(
        task_id="look", sql=sql, descriptor_path=str(tmp_path), for_other_runner=True, **options
    )
    output = rendered(operator, found).execute(found)
    pushed = json.loads(json.dumps(found["ti"].pushed))
    return output, {key: value for key, value in pushed.items() if not key.startswith("hive_opt")}


def text_of(uri):
    return Path(uri.removeprefix("file://")).read_text()


def test_each_xcom_has_a_file_with_the_same_content(spark, tmp_path):
    output, pushed = look(tmp_path)
    names = ("restricted_sql", "restricted_sql_guarded", "partitions")
    assert set(pushed) == {*names, *(f"{name}_uri" for name in names)}
    sql = pushed["restricted_sql"]
    assert "WHERE `f`.`p` IN (0, 1)) AS `f`" in sql or "WHERE `f`.`p` IN (0, 1)) f" in sql
    assert text_of(pushed["restricted_sql_uri"]) == sql == restricted_sql(output)
    *guard, last = pushed["restricted_sql_guarded"]
    assert (len(guard), last) == (2, sql)
    script = text_of(pushed["restricted_sql_guarded_uri"])
    assert script == restricted_sql(output, guarded=True)
    assert [text for text in script.split("\n;\n") if text] == [*guard, sql.rstrip("\n;")]
    assert json.loads(text_of(pushed["partitions_uri"])) == pushed["partitions"]
    spark.sql("INSERT OVERWRITE TABLE other.result VALUES (9, 9)")
    for statement in [text for text in script.split("\n;\n") if text]:
        spark.sql(statement).collect()
    assert sorted(map(tuple, spark.table("other.result").collect())) == [(0, 0), (1, 1)]


def test_a_long_content_is_only_in_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.provider.other_runner.LONGEST", 300)
    output, pushed = look(tmp_path)
    assert set(pushed) == {
        "restricted_sql",
        *("restricted_sql_uri", "restricted_sql_guarded_uri", "partitions_uri"),
    }
    assert "assert_true" in restricted_sql(output, guarded=True)


def test_only_the_local_task_without_parameters_may_hand_over():
    with pytest.raises(TypeError, match="for_other_runner can't be set: this operator runs"):
        MapJoinPruneOperator(task_id="t", sql=SQL, for_other_runner=True)
    with pytest.raises(TypeError, match="parameters can't be set with for_other_runner"):
        LocalTaskOperator(task_id="t", sql=SQL, for_other_runner=True, parameters={"a": 1})
    with pytest.raises(ValueError, match="for_other_runner must be True or False, not 'yes'"):
        LocalTaskOperator(task_id="t", sql=SQL, for_other_runner="yes")
    with DAG("d"):
        group = MapJoinPruneTaskGroup("sales", sql=SQL, for_other_runner=True)
    assert group.local_task.for_other_runner


def test_set_lines_are_refused_before_keys_are_read(tmp_path):
    sql = f"SET spark.sql.ansi.enabled=false;\n{SQL}"
    with pytest.raises(AirflowFailException, match="SET spark.sql.ansi.enabled, which another"):
        look(tmp_path, sql=sql)
    assert list(tmp_path.iterdir()) == []


def test_prune_only_skips_the_tasks_after_it(tmp_path):
    with pytest.raises(AirflowSkipException, match="prune_only is true"):
        look(tmp_path, prune_only=True)


def test_the_macro_says_what_is_missing(tmp_path):
    with pytest.raises(AirflowFailException, match="needs the output of a LocalTaskOperator"):
        restricted_sql(None)
    without = {"uri": str(tmp_path / "1.json"), "digest": ""}
    with pytest.raises(AirflowFailException, match="no such file: set for_other_runner=True at"):
        restricted_sql(without)


@needs_airflow("3.0")  # the file imports airflow.sdk
def test_templates_have_the_macro(tmp_path, start):  # noqa: F811
    (tmp_path / "templates.py").write_text(
        "from airflow.providers.standard.operators.python import PythonOperator\n"
        "from airflow.sdk import DAG\n"
        "from airflow_hive_opt.operators.local_task import LocalTaskOperator\n"
        f"SQL = {SQL.replace('{{ params.below }}', '2')!r}\n"
        "with DAG('templates', schedule=None):\n"
        "    look = LocalTaskOperator(task_id='look', sql=SQL, for_other_runner=True)\n"
        "    look >> PythonOperator(task_id='shown', python_callable=lambda text: text, op_args=[\n"
        "        \"{{ macros.hive_opt.restricted_sql(ti.xcom_pull('look')) }}\"])\n"
    )
    found = start("templates", folder=tmp_path)
    assert found.state == "success"
    (instance, *_) = found.get_task_instances()
    assert "IN (0, 1)" in instance.xcom_pull(task_ids="shown")
