"""Redundant joins are removed if that changes no row, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.spark.keys.key_query import COUNTING, collect_keys
from airflow_hive_opt.spark.keys.stability import stable_plan
from airflow_hive_opt.spark.session.physical_operators import operators_of
from airflow_hive_opt.statement.settings import Settings
from tests.cases import slow_but
from tests.spark.answers import ask
from tests.spark.stages import job_of, join, map_join, prune


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    """``fact``: 12 days and the NULL partition, 3 rows each; ``days``: with a twin and NULLs."""
    for statement in (
        "CREATE DATABASE IF NOT EXISTS elimination",
        "USE elimination",
        "CREATE TABLE fact (id INT, item INT, n INT) PARTITIONED BY (day INT) STORED AS PARQUET",
        "INSERT INTO fact SELECT id, id % 5, id, IF(id % 13 = 12, NULL, id % 13) FROM range(39)",
        "CREATE TABLE days (day INT, week INT, note STRING, info STRUCT<y: INT>) STORED AS PARQUET",
        "INSERT INTO days SELECT id, id DIV 3, concat('n', id), struct(2 AS y) FROM range(15)",
        "INSERT INTO days VALUES (1, 0, 'twin', NULL), (NULL, 2, 'x', NULL), (NULL, 2, 'y', NULL), "
        "(99, 2, 'z', NULL)",
        "CREATE TABLE wide STORED AS PARQUET AS SELECT CAST(day AS BIGINT) day, week FROM days",
        "CREATE TABLE items STORED AS PARQUET AS SELECT CAST(id AS INT) item FROM range(4)",
        "CREATE TABLE hours (id INT) PARTITIONED BY (ds STRING, hr INT) STORED AS PARQUET",
        "INSERT INTO hours SELECT id, concat('d', id DIV 4), id % 4 FROM range(24)",
        "CREATE TABLE slots (ds STRING, hr INT, open BOOLEAN) STORED AS PARQUET",
        "INSERT INTO slots VALUES ('d0', 1, true), ('d3', 2, true), ('d5', 0, false)",
        "CREATE TABLE dates (ds STRING, kind INT) STORED AS PARQUET",
        "INSERT INTO dates VALUES ('d0', 1), ('d3', 1), ('d4', 2)",
        "CREATE TABLE text (id INT) PARTITIONED BY (day INT) STORED AS TEXTFILE",
        "INSERT INTO text SELECT id, day FROM fact",
        "CREATE VIEW seen (id, shown) AS SELECT id, day FROM fact",
        "CREATE VIEW weeks AS SELECT day, week FROM days WHERE day < 9",
        "CREATE TABLE result (id INT, day INT) STORED AS PARQUET",
    ):
        spark.sql(statement)
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE elimination CASCADE")


STAR = "FROM fact f JOIN days d ON f.day = d.day"

LEFT_OUT = {
    "the key alone": f"SELECT f.id {STAR} WHERE d.week = 2",
    "nothing of the table": f"SELECT count(*) {STAR} AND d.week = 2 AND d.note <> 'n7'",
    "old style": "SELECT id FROM days d, fact f WHERE (f.day = d.day) AND (week IN (1, 2))",
    "with another table": f"SELECT f.id, i.item {STAR} JOIN items i ON i.item = f.item "
    "WHERE d.week = 3",
    "no key at all": f"SELECT count(*) {STAR} WHERE d.week = 1 AND d.note = 'none'",
    "in a subquery": "SELECT x.n FROM "
    f"(SELECT count(*) n {STAR} WHERE d.week = 2 GROUP BY f.day) x WHERE x.n > 1",
    "in a CTE read twice": f"WITH x AS (SELECT f.id, f.day {STAR} WHERE d.week = 2) "
    "SELECT a.id, b.day FROM x a JOIN x b ON a.id = b.id",
    "in both branches": f"SELECT f.id {STAR} WHERE d.week = 2 UNION ALL "
    f"SELECT -f.id {STAR} WHERE d.week = 3",
    "columns together": "SELECT h.id FROM hours h JOIN slots s ON h.ds = s.ds AND h.hr = s.hr "
    "WHERE s.open",
    "with a subquery beside it": f"SELECT f.id {STAR} WHERE d.week = 2 AND f.item IN "
    "(SELECT i.item FROM items i WHERE i.item > 1)",
    "limited in order": f"SELECT f.id {STAR} WHERE d.week = 2 ORDER BY f.id LIMIT 2",
    "rolled up by others": f"SELECT f.item, count(*) n {STAR} WHERE d.week = 2 GROUP BY f.item "
    "WITH ROLLUP",
    "over a view of the small table": "SELECT f.id FROM fact f JOIN weeks w ON f.day = w.day "
    "WHERE w.week = 2",
    "of another whole number": "SELECT f.id FROM fact f JOIN wide w ON f.day = w.day "
    "WHERE w.week = 2",
    "nothing after ON": f"SELECT f.id {STAR} AND (d.week = 2)UNION ALL SELECT 1",
    "grouped without a space": "SELECT f.item, count(*) n FROM fact f JOIN days d ON d.week = 2 "
    "AND(f.day = d.day)GROUP BY f.item",
    "its name is a column's": "SELECT f.id, f.item AS days FROM days JOIN fact f "
    "ON f.day = days.day AND days.week = 2",
    "a hint for it": f"SELECT /*+ MAPJOIN(d) */ f.id {STAR} WHERE d.week = 2",
}


def tables_of(scans):
    return [scan.short_name for scan in scans]


@pytest.mark.parametrize(
    "name",
    slow_but(
        LEFT_OUT,
        "the key alone",
        "no key at all",
        "in both branches",
        "columns together",
        "rolled up by others",
        "a hint for it",
    ),
)
def test_redundant_joins_are_removed(spark, tmp_path, name):
    answer = ask(spark, tmp_path, LEFT_OUT[name])
    (table,) = set(tables_of(answer.report.fewer_joins.scans))
    assert f"{table} " not in answer.report.fewer_joins.text.replace("AS days", "")


KEPT = {
    "two rows of a key": f"SELECT f.id {STAR} WHERE d.week = 0",
    "its key is shown": f"SELECT f.id, d.day {STAR} WHERE d.week = 2 ORDER BY f.id",
    "its key is grouped by": f"SELECT d.day, sum(f.n) n {STAR} WHERE d.week = 2 GROUP BY d.day",
    "its key in expressions": f"SELECT f.id, d.day + f.n x {STAR} WHERE d.week = 2 AND d.day > f.n",
    "its key is sorted by": f"SELECT f.id {STAR} WHERE d.week = 2 ORDER BY d.day, f.id",
    "its key in a hint": f"SELECT /*+ REPARTITION(2, d.day) */ f.id {STAR} WHERE d.week = 2",
    "a field of its struct": f"SELECT f.id, info.y {STAR} WHERE d.week = 2",
    "its struct like an alias": f"SELECT named_struct('y', f.n) AS info, info.y AS x {STAR} "
    "WHERE d.week = 2",
    "its struct like a name around": "SELECT info.item FROM (SELECT item, -1 AS y FROM items) info "
    f"WHERE (SELECT count(*) {STAR} WHERE d.week = 2 AND info.y > 1) > 0",
    "its alias like a column's": "SELECT f.id, named_struct('day', -f.id) AS d "
    f"{STAR} WHERE d.week = 2 ORDER BY d.day, f.id LIMIT 2",
    "another column is shown": f"SELECT f.id, d.note {STAR} WHERE d.week = 2",
    "another column is compared": f"SELECT f.id {STAR} WHERE d.week = 2 AND f.n > d.week",
    "all columns are shown": f"SELECT * {STAR} WHERE d.week = 2",
    "an outer join": "SELECT f.id FROM days d LEFT JOIN fact f ON f.day = d.day AND d.week = 2",
    "an outer join beside it": f"SELECT f.id {STAR} LEFT JOIN items i ON i.item = f.item "
    "WHERE d.week = 2",
    "a semi join": "SELECT f.id FROM fact f LEFT SEMI JOIN days d ON f.day = d.day AND d.week = 2",
    "not the same each time": f"SELECT f.id {STAR} WHERE d.week = 2 AND rand() < 2",
    "which row is first": f"SELECT first(f.day) x {STAR} WHERE d.week = 5",
    "a subquery reads it": f"SELECT f.id {STAR} WHERE d.week = 2 AND EXISTS "
    "(SELECT 1 FROM items i WHERE i.item = f.item AND d.day > i.item)",
    "a subquery in its condition": f"SELECT f.id {STAR} WHERE d.week = 2 AND d.day IN "
    "(SELECT i.item + 5 FROM items i)",
    "sets of groups": f"SELECT f.day, d.day k, count(*) n {STAR} WHERE d.week = 2 "
    "GROUP BY f.day, d.day WITH ROLLUP",
    "its key has another type": "SELECT f.id, w.day FROM fact f JOIN wide w ON f.day = w.day "
    "WHERE w.week = 2",
    "compared in an expression": "SELECT f.id FROM fact f JOIN days d ON f.day = d.day + 1 "
    "WHERE d.week = 2",
    "nulls are equal": "SELECT f.id FROM fact f JOIN days d ON f.day <=> d.day WHERE d.week = 2",
    "keys of two tables": f"SELECT f.id {STAR} JOIN wide w ON w.day = d.day WHERE w.week = 2",
    "one table for two scans": f"SELECT f.id, g.id x {STAR} JOIN fact g ON g.day = d.day "
    "WHERE d.week = 2",
    "a view of the big table": "SELECT s.id FROM seen s JOIN days d ON s.shown = d.day "
    "WHERE d.week = 2",
    "a table read by a SerDe": "SELECT t.id FROM text t JOIN days d ON t.day = d.day "
    "WHERE d.week = 2",
    "USING": "SELECT f.id FROM fact f JOIN days d USING (day) WHERE d.week = 2",
    "lateral views": f"SELECT f.id, x {STAR} LATERAL VIEW explode(array(1, 2)) e AS x "
    "WHERE d.week = 2",
}


@pytest.mark.parametrize(
    "name",
    slow_but(
        KEPT,
        "two rows of a key",
        "its key is shown",
        "another column is compared",
        "an outer join",
        "not the same each time",
        "a subquery reads it",
        "keys of two tables",
        "a table read by a SerDe",
    ),
)
def test_joins_that_are_not_redundant_are_kept(spark, tmp_path, name):
    answer = ask(spark, tmp_path, KEPT[name])
    assert answer.report.fewer_joins is None


def test_of_two_small_tables_only_the_redundant_one_is_removed(spark, tmp_path):
    answer = ask(
        spark,
        tmp_path,
        "SELECT h.id, s.open FROM hours h JOIN dates d ON h.ds = d.ds JOIN slots s ON h.hr = s.hr "
        "WHERE d.kind = 1 AND s.open",
    )
    assert tables_of(answer.report.fewer_joins.scans) == ["dates"]
    assert answer.kept == [("d0", "1"), ("d0", "2"), ("d3", "1"), ("d3", "2")]


def run(spark, tmp_path, sql, *changes, **options):
    job, path = job_of(sql, **options), UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path)
    for change in changes:
        spark.sql(change)
    return job, path, pruned


def test_parameters_of_a_removed_join_are_still_bound(spark, tmp_path):
    sql = f"SELECT f.id {STAR} WHERE d.week = :week AND f.n > :least"
    answer = ask(spark, tmp_path, sql, parameters={"week": 2, "least": 20})
    assert tables_of(answer.report.fewer_joins.scans) == ["days"]
    job, path, pruned = run(spark, tmp_path, sql, parameters={"week": 2, "least": 20})
    assert len(join(spark, job, pruned, path).rows) == len(answer.rows) == 4


def test_an_insert_runs_without_the_redundant_join(spark, tmp_path):
    insert = f"INSERT OVERWRITE TABLE result SELECT f.id, f.day {STAR} WHERE d.week = 2"
    job, path, pruned = run(spark, tmp_path, insert)
    result = join(spark, job, pruned, path)
    assert tables_of(result.report.eliminated) == ["days"]
    (eliminated,) = result.report.summary()["eliminated"]
    assert (eliminated["scan"], eliminated["table"]) == ("d", "elimination.days")
    assert "days" not in result.statement
    plain = spark.sql(f"SELECT f.id, f.day {STAR} WHERE d.week = 2").collect()
    assert sorted(spark.table("result").collect()) == sorted(plain)


@pytest.mark.parametrize("small", ["days", "elimination.days", "weeks"])
def test_a_join_with_the_table_that_is_written_is_kept(spark, tmp_path, small):
    """Spark refuses that, or reads what it writes."""
    insert = "INSERT OVERWRITE TABLE days SELECT f.day, 7, 'new', NULL FROM fact f "
    sql = f"{insert} JOIN {small} d ON f.day = d.day WHERE d.week = 2"
    _, _, pruned = run(spark, tmp_path, sql)
    assert pruned.descriptor.targets
    assert pruned.fewer_joins is None


def test_another_application_reads_the_small_table_again(spark, tmp_path):
    job, path, pruned = run(spark, tmp_path, f"SELECT f.id {STAR} WHERE d.week = 3")
    assert pruned.summary()["eliminated"] == []
    result = map_join(spark, job, path, pruned.descriptor.digest)
    assert "days" in result.statement
    assert result.report.summary()["eliminated"] == []


@pytest.mark.parametrize("broken", [" oh no", " AND raise_error('PLAN_VALIDATION_FAILED') IS NULL"])
def test_the_pruned_statement_runs_if_spark_refuses_the_one_without_joins(spark, tmp_path, broken):
    """The one with all joins runs, with restricted scans."""
    job, path, pruned = run(spark, tmp_path, f"SELECT f.id {STAR} WHERE d.week = 2 AND f.n > 1")
    refused = replace(pruned.fewer_joins, text=pruned.fewer_joins.text + broken)
    result = join(spark, job, replace(pruned, fewer_joins=refused), path)
    assert len(result.rows) == 9
    assert result.report.eliminated == ()
    assert result.report.summary()["kept"] == 3
    assert "days" in result.statement
    assert "IN (6, 7, 8)" in result.statement


def test_redundant_joins_of_rewritten_statements_are_removed(spark, tmp_path):
    """The rewritten statement is the one that joins are left out of."""
    sql = (
        f"SELECT f.id {STAR} WHERE d.week = 2 AND f.n > "
        "(SELECT avg(g.n) FROM fact g WHERE g.item = f.item)"
    )
    settings = Settings.of({"hive.optimize.correlation": "true"})
    job, path, pruned = run(spark, tmp_path, sql, settings=settings)
    rows = sorted(join(spark, job, pruned, path).rows)
    assert rows == sorted(map(tuple, spark.sql(sql).collect()))


def test_key_queries_count_rows_without_a_shuffle(spark):
    sql = "SELECT DISTINCT `d`.`day` FROM days AS `d` WHERE (d.week = 2)"
    source = KeySource(("d",), "days", sql, (ColumnRef("d", "day"),), (), (), hashable=True)
    frame = spark.sql(source.counting_sql)
    assert stable_plan(frame).operators[: len(COUNTING)] == COUNTING
    assert not [kind for kind, _ in operators_of(frame) if kind == "ShuffleExchangeExec"]
    keys = collect_keys(spark, source, KeyBounds(10), {})
    assert (keys.count, keys.unique) == (5, False)  # NULL twice
