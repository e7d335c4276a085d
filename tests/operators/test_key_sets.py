"""Key sets by name and by folder: who shares which keys."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_hive_opt.documents.cleaning import older_than
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.attempts import key_sets_folder
from tests.operators.test_split_form import Instance
from tests.spark.shared_keys import aged, counted

OF_A_DAY = (
    "SELECT f.id FROM named_keys.fact f JOIN named_keys.days d ON f.p = d.p "
    "WHERE d.week = 1 AND f.id > {{ ds }}"
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE named_keys")
    fact = spark.range(60).selectExpr("id", "CAST(id % 20 AS INT) p")
    fact.coalesce(1).write.partitionBy("p").saveAsTable("named_keys.fact")
    days = spark.range(20).selectExpr("CAST(id AS INT) p", "CAST(id / 7 AS INT) week")
    days.coalesce(1).write.saveAsTable("named_keys.days")
    aged(spark, "named_keys.days")
    yield
    spark.sql("DROP DATABASE named_keys CASCADE")


@pytest.fixture
def asked(monkeypatch):
    """The sources whose key query has run."""
    return counted(monkeypatch)


def context(**changes):
    values = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "try_number": 1}
    return {"ti": Instance(**{**values, "pushed": {}, **changes}), "ds": changes.get("ds", 0)}


def run(tmp_path, key_sets="days", sql=OF_A_DAY, **changes):
    """The code of the only key query of a task."""
    found = context(**changes)
    task = MapJoinPruneOperator(
        task_id="t", sql=sql, key_sets=key_sets, descriptor_path=str(tmp_path), local_task="spark"
    )
    task.render_template_fields(found)
    (use,) = task.execute(found)["key_sets"]
    return use["code"]


def test_a_mapped_task_reads_the_keys_of_all_its_instances_once(tmp_path, asked):
    found = [run(tmp_path, map_index=at, ds=at) for at in range(4)]
    assert (found, asked) == (["ABSENT", *["TAKEN"] * 3], ["days"])


def test_a_backfill_reads_the_keys_of_all_days_once_until_a_small_table_changes(
    spark, tmp_path, asked
):
    found = [run(tmp_path, run_id=f"backfill__{day}", ds=day) for day in range(3)]
    assert (found, asked) == (["ABSENT", "TAKEN", "TAKEN"], ["days"])
    spark.sql("INSERT INTO named_keys.days VALUES (19, 1)")
    aged(spark, "named_keys.days")
    later = [run(tmp_path, run_id=f"backfill__{day}", ds=day) for day in range(3, 6)]
    assert (later, asked) == (["TABLES_CHANGED", "TAKEN", "TAKEN"], ["days"] * 2)


def test_days_with_keys_of_their_own_have_a_key_query_each(tmp_path, asked):
    sql = OF_A_DAY.replace("week = 1", "p = {{ ds }}")
    found = [run(tmp_path, sql=sql, run_id=f"backfill__{day}", ds=day) for day in (0, 1, 0, 1)]
    assert (found, asked) == (["ABSENT", "ABSENT", "TAKEN", "TAKEN"], ["days"] * 2)


def test_dags_share_no_name_but_a_folder(tmp_path, asked):
    assert [run(tmp_path, dag_id=dag) for dag in ("one", "two")] == ["ABSENT", "ABSENT"]
    folder = str(tmp_path / "of all")
    assert [run(tmp_path, folder, dag_id=dag) for dag in ("one", "two")] == ["ABSENT", "TAKEN"]
    assert run(tmp_path, "{{ ti.dag_id }}s", dag_id="day") == "ABSENT"
    assert (tmp_path / "key_sets" / "day" / "days").is_dir()
    assert len(asked) == 4


@pytest.mark.parametrize("given", ["", " ", 5, ["days"]])
def test_a_key_set_has_a_name(given):
    with pytest.raises(ValueError, match="key_sets must be a name or the path of a folder"):
        MapJoinPruneOperator(task_id="t", sql=OF_A_DAY, key_sets=given)


@pytest.mark.parametrize("given", ["a/b", "", "./keys", "none://bucket/keys"])
def test_a_rendered_key_set_that_is_no_place_fails_the_task_without_a_retry(tmp_path, given):
    with pytest.raises(AirflowFailException, match="key_sets"):
        key_sets_folder(given, str(tmp_path), context())


def test_old_key_sets_with_names_are_cleaned(tmp_path):
    run(tmp_path)
    (kept,) = (tmp_path / "key_sets" / "d" / "days").iterdir()
    for name in ("mine.json", ".hive-opt-00ff.tmp"):
        kept.with_name(name).write_text("")
    later = datetime.now(timezone.utc) + timedelta(days=2)
    found = {path.name for path in older_than(UPath(tmp_path), timedelta(days=1), later)}
    assert found == {"1.json", "1.report.json", kept.name, ".hive-opt-00ff.tmp"}
