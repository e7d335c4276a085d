"""The examples of Hive's documents: outer joins, the manual's joins, correlation."""

from __future__ import annotations

import pytest

from airflow_hive_opt.explain.plan_text import explain, explanation_to_json
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.example_catalog import CATALOG

COMMON = {"hive.auto.convert.join": "false", "hive.mapred.mode": "nonstrict"}
HINTED = {**COMMON, "hive.ignore.mapjoin.hint": "false"}


def plan(sql: str, settings: dict[str, str] = COMMON) -> dict:
    return explanation_to_json(explain(sql, CATALOG, settings))


def filters(sql: str) -> list[tuple[str, str, str]]:
    return [(each["alias"], each["at"], each["predicate"]) for each in plan(sql)["filters"]]


class TestOuterJoinBehaviour:
    LEFT = "select s1.key, s2.key from src s1 left join src s2 "

    def test_j1_join_predicate_on_the_preserved_table_stays_in_the_join(self):
        assert filters(self.LEFT + "on s1.key > '2'") == []

    def test_j2_join_predicate_on_the_null_supplying_table_is_pushed(self):
        assert filters(self.LEFT + "on s2.key > '2'") == [("s2", "scan", "key > '2'")]

    def test_w1_where_predicate_on_the_preserved_table_is_pushed(self):
        assert filters(self.LEFT + "where s1.key > '2'") == [("s1", "scan", "key > '2'")]

    def test_w2_where_predicate_on_the_null_supplying_table_stays_after_the_join(self):
        assert filters(self.LEFT + "where s2.key > '2'") == [("s2", "after_join", "key > '2'")]

    def test_full_outer_join_pushes_nothing(self):
        sql = "select a.key from src a full outer join src b on a.key=b.key where a.key > '2'"
        assert filters(sql) == [("a", "after_join", "key > '2'")]

    def test_ppd_off_leaves_where_after_the_join(self):
        sql = "select a.key from src a join src b on a.key=b.key where a.key > '2'"
        found = plan(sql, {**COMMON, "hive.optimize.ppd": "false"})
        assert [each["at"] for each in found["filters"]] == ["after_join"]


class TestJoinsOfTheManual:
    @pytest.mark.parametrize(
        ("on", "jobs"), [("c.key = b.key", 1), ("c.key = a.key", 1), ("c.key = b.value", 2)]
    )
    def test_joins_on_the_same_key_need_one_job(self, on: str, jobs: int):
        sql = f"select a.value from src a join src1 b on a.key = b.key join src c on {on}"
        assert plan(sql)["map_reduce"] == jobs

    def test_the_last_table_of_a_join_is_streamed(self):
        sql = "select a.key from src a join src1 b on a.key = b.key join src c on c.key = b.key"
        assert plan(sql)["joins"][0]["tag_order"] == [0, 1, 2]

    def test_the_hint_streamtable_names_the_table_to_stream(self):
        sql = (
            "select /*+ STREAMTABLE(a) */ a.key from src a join src1 b on a.key = b.key "
            "join src c on c.key = b.key"
        )
        assert plan(sql)["joins"][0]["tag_order"] == [2, 1, 0]

    def test_a_join_with_the_hint_mapjoin_needs_no_reducer(self):
        sql = "select /*+ MAPJOIN(b) */ a.key, a.value from src a join src1 b on a.key = b.key"
        found = plan(sql, HINTED)
        assert found["joins"][0]["kind"] == "MapJoin"
        assert [stage["kind"] for stage in found["stages"]] == ["LocalWork", "MapReduce", "Fetch"]

    @pytest.mark.parametrize("kind", ["full outer", "right outer"])
    def test_the_hint_mapjoin_of_a_preserved_table_is_rejected(self, kind: str):
        sql = f"select /*+ MAPJOIN(b) */ a.key from src a {kind} join src1 b on a.key = b.key"
        with pytest.raises(PlanError) as raised:
            plan(sql, HINTED)
        assert raised.value.number == 10057

    def test_two_hinted_map_joins_in_a_row_are_rejected(self):
        sql = (
            "select /*+ MAPJOIN(c) */ t.key from (select /*+ MAPJOIN(b) */ a.key, a.value from "
            "src a join src1 b on a.key = b.key) t join src1 c on t.value = c.value"
        )
        with pytest.raises(PlanError) as raised:
            plan(sql, HINTED)
        assert raised.value.number == 10227

    def test_joins_of_bucketed_and_sorted_tables_are_bucket_map_joins(self):
        sql = "select /*+ MAPJOIN(b) */ a.key from b4 a join b2 b on a.key = b.key"
        buckets = {**HINTED, "hive.optimize.bucketmapjoin": "true"}
        found = plan(sql, buckets)["joins"][0]
        assert (found["kind"], found["big_alias"]) == ("BucketMapJoin", "a")
        merged = plan(sql, {**buckets, "hive.optimize.bucketmapjoin.sortedmerge": "true"})
        assert merged["joins"][0]["kind"] == "SortMergeBucketMapJoin"
        assert merged["local_work"] == 0

    def test_a_join_without_an_equality_is_a_cartesian_product(self):
        sql = "select a.key from src a join src1 b on a.key <> b.key"
        assert plan(sql)["joins"][0]["phase"] == "reduce"
        with pytest.raises(PlanError, match="Cartesian"):
            plan(sql, {**COMMON, "hive.mapred.mode": "strict"})


def test_the_correlation_optimizers_example_needs_one_job():
    """RS4, RS2, RS3, RS1: a group-by, a join and a group-by again share one job."""
    sql = (
        "select tmp1.key, count(1) from (select key, avg(value) av from src group by key) tmp1 "
        "join src1 on tmp1.key = src1.key group by tmp1.key"
    )
    found = plan(sql, {**COMMON, "hive.optimize.correlation": "true"})
    assert found["correlation"] == {"applied": True, "jobs_before": 3, "jobs_after": 1}


@pytest.mark.parametrize(
    ("sql", "number", "column"),
    [
        ("select a.key from src a join src1 b on a.key = b.nosuch", 10002, 48),
        ("select a.key from src a join src1 b on key = b.key", 10008, 40),
        ("select a.key from src a join nosuch b on a.key = b.key", 10001, 30),
        ("select key from src a join src1 b on a.key = b.key", 40000, 8),
        ("select a.key from src a where exists (select 1 from src1 b)", 10250, 38),
    ],
)
def test_rejected_statements_have_a_line_and_a_column(sql: str, number: int, column: int):
    with pytest.raises(PlanError) as raised:
        plan(sql)
    assert (raised.value.number, raised.value.line, raised.value.column) == (number, 1, column)
