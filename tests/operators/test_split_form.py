"""Local task and map join as two tasks: what passes between them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    task,
)

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup
from tests.operators.star_tables import make_star

SQL = (
    "INSERT OVERWRITE TABLE split.result SELECT f.id, f.p FROM split.fact f "
    "JOIN split.keys k ON f.p = k.p AND k.id < {{ params.below }}"
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    make_star(spark, "split", rows=6)
    spark.sql("CREATE TABLE split.result (id INT, p INT) STORED AS PARQUET")
    yield
    spark.sql("DROP DATABASE split CASCADE")


class Instance(SimpleNamespace):
    def xcom_push(self, key, value):
        self.pushed[key] = value


def context(task_id="local_task", below=2, **changes):
    instance = Instance(
        dag_id="d", run_id="r", task_id=task_id, map_index=-1, try_number=1, pushed={}, **changes
    )
    return {"ti": instance, "params": {"below": below}}


def rendered(operator, found):
    operator.render_template_fields(found)
    return operator


def prune(tmp_path, below=2, sql=SQL, **options):
    found = context(below=below)
    operator = LocalTaskOperator(
        task_id="local_task", sql=sql, descriptor_path=str(tmp_path), **options
    )
    return rendered(operator, found).execute(found)


def join(tmp_path, descriptor, below=2, sql=SQL, **options):
    found = context("map_join", below)
    operator = MapJoinOperator(
        task_id="map_join", sql=sql, descriptor=descriptor, descriptor_path=str(tmp_path), **options
    )
    return rendered(operator, found), operator.execute(found)


def rows(spark):
    spark.sql("REFRESH TABLE split.result")  # another session wrote it
    return sorted(map(tuple, spark.table("split.result").collect()))


def test_the_summary_is_all_that_the_map_join_needs(spark, tmp_path):
    spark.sql("INSERT OVERWRITE TABLE split.result VALUES (9, 9)")
    pruned = prune(tmp_path)
    assert rows(spark) == [(9, 9)]
    assert (pruned["kept"], pruned["total"], pruned["prune_only"]) == (2, 6, False)
    through_xcom = json.loads(json.dumps(pruned))
    operator, summary = join(tmp_path, through_xcom)
    assert rows(spark) == [(0, 0), (1, 1)]
    assert set(pruned["seconds"]) == {"local task"}
    assert set(summary["seconds"]) == {"prelaunch", "map join", "report"}
    assert summary["work"]["map join"]["partitions_fetched"] == 2
    assert summary["uri"] == pruned["uri"]
    assert "WHERE `f`.`p` IN (0, 1)" in operator.statement
    assert Path(tmp_path / "d/r/local_task/-1/1.report.json").exists()
    assert Path(tmp_path / "d/r/map_join/-1/1.report.json").exists()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"below": 3}, "not those of the local task"),
        ({"sql": SQL + " -- {{ ti.task_id }}"}, "not those of the local task"),
        ({"parameters": {"a": 1}}, "not those of the local task"),
    ],
)
def test_a_descriptor_of_another_statement_is_refused(spark, tmp_path, other, message):
    pruned = prune(tmp_path)
    spark.sql("INSERT OVERWRITE TABLE split.result VALUES (9, 9)")
    with pytest.raises(AirflowFailException, match=message):
        join(tmp_path, pruned, **other)
    assert rows(spark) == [(9, 9)]


def test_a_descriptor_that_is_another_attempts_or_altered_is_refused(spark, tmp_path):
    mine, other = prune(tmp_path / "a"), prune(tmp_path / "b", below=3)
    spark.sql("INSERT OVERWRITE TABLE split.result VALUES (9, 9)")
    with pytest.raises(AirflowException, match="another task's or attempt's"):
        join(tmp_path, {**mine, "uri": other["uri"]})
    path = Path(mine["uri"])
    path.write_text(path.read_text().replace('"total": 6', '"total": 7'))
    with pytest.raises(AirflowException, match="changed or truncated"):
        join(tmp_path, mine)
    path.unlink()
    with pytest.raises(AirflowException, match="can't read the descriptor"):
        join(tmp_path, mine)
    assert rows(spark) == [(9, 9)]


def test_a_map_join_without_a_descriptor_is_refused(tmp_path):
    with pytest.raises(AirflowFailException, match="must be the output of a LocalTaskOperator"):
        join(tmp_path, None)


def test_the_gates_stop_the_run_before_the_join(spark, tmp_path):
    with pytest.raises(AirflowFailException, match="max_partitions is 1"):
        prune(tmp_path, max_partitions=1)
    with pytest.raises(AirflowSkipException, match="no partition of f"):
        prune(tmp_path, below=0, on_empty="skip")
    assert prune(tmp_path, max_bytes=10**9)["kept"] == 2
    with pytest.raises(AirflowFailException, match="bytes, but max_bytes is 1$"):
        prune(tmp_path, max_bytes=1)


def test_the_gates_also_hold_for_partitions_that_appear_before_the_join(spark, tmp_path):
    spark.sql("INSERT INTO split.fact PARTITION (p = 77) VALUES (77)")
    spark.sql("INSERT INTO split.keys VALUES (-7, 77)")
    only = SQL.replace("k.id < {{ params.below }}", "k.id = -7")
    pruned = prune(tmp_path, sql=only, on_empty="skip")
    assert pruned["kept"] == 1
    spark.sql("ALTER TABLE split.fact DROP PARTITION (p = 77)")
    found = context("map_join")
    options = {"sql": only, "descriptor": pruned, "descriptor_path": str(tmp_path)}
    operator = MapJoinOperator(task_id="map_join", on_empty="skip", **options)
    with pytest.raises(AirflowSkipException):
        rendered(operator, found).execute(found)
    pushed = found["ti"].pushed  # for the page, which shows the list as it is now
    assert pushed["hive_opt_figures"]["stopped"] == "the keys match no partition of f"
    assert pushed["hive_opt_descriptor"] == pruned["uri"]
    assert pushed["hive_opt_summary"]["decisions"][0]["kept"] == 0
    assert pushed["hive_opt_summary"]["digest"] == pruned["digest"]


@pytest.mark.parametrize("only", [True, "{{ params.below == 2 }}"])
def test_a_run_with_prune_only_does_not_join(spark, tmp_path, only):
    spark.sql("INSERT OVERWRITE TABLE split.result VALUES (9, 9)")
    pruned = prune(tmp_path, prune_only=only)
    assert (pruned["kept"], pruned["prune_only"]) == (2, True)
    with pytest.raises(AirflowSkipException, match="prune_only"):
        join(tmp_path, pruned)
    found = context()
    operator = MapJoinPruneOperator(
        task_id="t", sql=SQL, descriptor_path=str(tmp_path / "one"), prune_only=only
    )
    with pytest.raises(AirflowSkipException, match="nothing was joined"):
        rendered(operator, found).execute(found)
    assert found["ti"].pushed["return_value"]["kept"] == 2
    assert rows(spark) == [(9, 9)]


def test_dry_is_the_old_name_of_prune_only_and_both_are_booleans(tmp_path):
    with pytest.warns(DeprecationWarning, match="dry is now called prune_only"):
        old = MapJoinPruneOperator(task_id="t", sql=SQL, dry="{{ 1 < 2 }}")
    assert old.prune_only == "{{ 1 < 2 }}"
    with pytest.raises(
        AirflowFailException, match="prune_only must be true or false, not 'perhaps'"
    ):
        prune(tmp_path, prune_only="perhaps")


def test_the_task_group_gives_both_tasks_the_same_statement():
    with DAG("d") as dag:
        group = MapJoinPruneTaskGroup(
            "sales",
            sql=SQL,
            parameters={"a": 1},
            max_keys=5,
            python_functions=True,
            max_partitions=3,
            show_rows=7,
            retries=2,
            map_join_args={"conn_id": "cluster"},
        )
    assert set(dag.task_dict) == {"sales.local_task", "sales.map_join"}
    local_task, map_join = dag.task_dict["sales.local_task"], dag.task_dict["sales.map_join"]
    assert map_join.upstream_task_ids == {"sales.local_task"}
    assert group.output.operator is map_join
    for name in ("sql", "parameters", "max_partitions", "retries"):
        assert getattr(local_task, name) == getattr(map_join, name)
    assert (local_task.max_keys, local_task.conn_id, map_join.conn_id) == (5, None, "cluster")
    assert local_task.python_functions
    assert (local_task.show_rows, map_join.show_rows) == (None, 7)


def test_the_task_group_refuses_unknown_arguments():
    # before Airflow 3.0 it is an AirflowException
    with DAG("d"), pytest.raises((TypeError, AirflowException), match="max_partition"):
        MapJoinPruneTaskGroup("sales", sql=SQL, max_partition=3)


def test_the_task_group_takes_several_statements_that_share_a_key_set():
    with DAG("d") as dag:
        before = LocalTaskOperator(task_id="before", sql=SQL)
        group = MapJoinPruneTaskGroup(
            "sales",
            sql={"rows": SQL, "sums": SQL.replace("f.id", "sum(f.id)"), "more": SQL},
            max_partitions=3,
            on_empty="skip",
            retries=2,
        )
        before >> group
    names = {"rows", "sums", "more"}
    tasks = {f"sales.{kind}_{name}" for kind in ("local_task", "map_join") for name in names}
    assert set(dag.task_dict) == {"before", *tasks}
    first = group.local_task
    assert (first.task_id, first.upstream_task_ids) == ("sales.local_task_rows", {"before"})
    for name, local_task in group.local_tasks.items():
        assert (local_task.key_sets, local_task.retries) == ("sales", 2)
        # a gate of one statement must not skip the others
        assert (local_task.max_partitions, local_task.on_empty) == (None, "run")
        map_join = group.map_joins[name]
        assert map_join.sql == local_task.sql
        assert map_join.upstream_task_ids == {local_task.task_id}
        assert (map_join.max_partitions, map_join.on_empty) == (3, "skip")
        if local_task is not first:
            assert local_task.upstream_task_ids == {first.task_id}
    assert group.output.operator is group.map_joins["rows"]


def test_the_statements_of_a_task_group_may_have_a_key_set_of_another_name():
    with DAG("d"):
        group = MapJoinPruneTaskGroup("sales", sql={"rows": SQL}, key_sets="days")
        with pytest.raises(ValueError, match="sql must have at least one statement"):
            MapJoinPruneTaskGroup("none", sql={})
    assert group.local_task.key_sets == "days"


def test_a_local_task_refuses_show_rows():
    for make in (
        lambda: LocalTaskOperator(task_id="t", sql=SQL, show_rows=0),
        lambda: MapJoinPruneTaskGroup("sales", sql=SQL, local_task_args={"show_rows": 0}),
    ):
        with DAG("d"), pytest.raises(TypeError, match="show_rows can't be set: a local task"):
            make()


def test_the_decorator_runs_what_the_function_returns(spark, tmp_path):
    with DAG("d"):

        @task.map_join_prune(descriptor_path=str(tmp_path))
        def sales(table, params):
            return SQL.replace("split.fact", table) + f" /* {params['below']} */"

        operator = sales("split.fact").operator
    found = context(below=3)
    summary = rendered(operator, found).execute(found)
    assert summary["kept"] == 3
    assert "k.id < 3 /* 3 */" in operator.sql
    assert rows(spark) == [(0, 0), (1, 1), (2, 2)]


def test_the_decorators_function_must_return_text(tmp_path):
    with DAG("d"):
        operator = task.map_join_prune(lambda: None, task_id="t")().operator
    with pytest.raises(AirflowFailException, match="must return the statement as text, not None"):
        operator.execute(context())
