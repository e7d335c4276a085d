"""Every join direction: plain Spark's rows, and only the partitions that match the keys."""

from __future__ import annotations

import pytest

from tests.cases import slow_but
from tests.spark.answers import ask, files_of
from tests.versions.installed import needs_spark


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    """``fact``: 20 days and the default partition, 3 rows each; ``days``: with twins and NULLs."""
    spark.sql("CREATE DATABASE IF NOT EXISTS joins")
    spark.sql("USE joins")
    spark.sql("CREATE TABLE fact (id INT, item INT) PARTITIONED BY (ds STRING) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO fact SELECT id, id % 5, CASE WHEN id % 21 = 20 THEN NULL "
        "ELSE date_format(date_add(DATE'2020-01-01', CAST(id % 21 AS INT)), 'yyyy-MM-dd') END "
        "FROM range(63)"
    )
    spark.sql("CREATE TABLE days (ds STRING, week INT, note STRING) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO days SELECT date_format(date_add(DATE'2020-01-01', CAST(id AS INT)), "
        "'yyyy-MM-dd'), CAST(id DIV 7 AS INT), 'n' FROM range(25)"
    )
    # a twin, a NULL key, a key without a partition
    spark.sql(
        "INSERT INTO days VALUES ('2020-01-08', 1, 'twin'), (NULL, 1, 'x'), ('never', 1, 'x')"
    )
    spark.sql("CREATE TABLE items (item INT, name STRING) STORED AS PARQUET")
    spark.sql("INSERT INTO items VALUES (0, 'a'), (1, 'b'), (2, NULL), (9, 'z')")
    spark.sql("CREATE TABLE hours (id INT) PARTITIONED BY (ds STRING, hr INT) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO hours SELECT id, CAST(id DIV 4 AS STRING), CAST(id % 4 AS INT) FROM range(24)"
    )
    spark.sql("CREATE TABLE slots (ds STRING, hr BIGINT, open BOOLEAN) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO slots VALUES ('0', 1, true), ('3', 2, true), ('5', 0, false), ('3', 3, true)"
    )
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE joins CASCADE")


WEEK = "f.ds BETWEEN '2020-01-08' AND '2020-01-14'"


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        (
            "SELECT f.id, d.note FROM fact f JOIN days d ON f.ds = d.ds WHERE d.week = 1",
            "SELECT f.id, d.note FROM fact f JOIN days d ON f.ds = d.ds WHERE d.week = 1 "
            f"AND {WEEK}",
        ),
        (
            "SELECT f.id FROM fact f, days d WHERE f.ds = d.ds AND week = 1",
            f"SELECT f.id FROM fact f, days d WHERE f.ds = d.ds AND week = 1 AND {WEEK}",
        ),
        (
            "SELECT f.* FROM fact f LEFT SEMI JOIN days d ON f.ds = d.ds AND d.week = 1",
            "SELECT f.* FROM fact f LEFT SEMI JOIN days d ON f.ds = d.ds AND d.week = 1 "
            f"WHERE {WEEK}",
        ),
        (
            "SELECT f.id, d.ds FROM fact f RIGHT JOIN days d ON f.ds = d.ds AND d.week = 1",
            "SELECT f.id, d.ds FROM fact f RIGHT JOIN days d "
            f"ON f.ds = d.ds AND d.week = 1 AND {WEEK}",
        ),
        (
            "SELECT d.ds, count(f.id) FROM days d LEFT JOIN fact f ON f.ds = d.ds "
            "WHERE d.week = 1 GROUP BY d.ds",
            "SELECT d.ds, count(f.id) FROM days d LEFT JOIN fact f "
            f"ON f.ds = d.ds AND {WEEK} WHERE d.week = 1 GROUP BY d.ds",
        ),
        (
            "SELECT d.ds FROM days d LEFT ANTI JOIN fact f ON f.ds = d.ds AND d.week = 1 "
            "AND f.item = 1",
            "SELECT d.ds FROM days d LEFT ANTI JOIN fact f ON f.ds = d.ds AND d.week = 1 "
            f"AND f.item = 1 AND {WEEK}",
        ),
        (
            "SELECT f.id FROM fact f JOIN days d USING (ds) WHERE d.week = 1",
            f"SELECT f.id FROM fact f JOIN days d USING (ds) WHERE d.week = 1 AND {WEEK}",
        ),
        (
            "SELECT q.ds, q.n FROM (SELECT ds, count(*) n FROM fact f GROUP BY ds) q "
            "JOIN days d ON q.ds = d.ds AND d.week = 1",
            f"SELECT q.ds, q.n FROM (SELECT ds, count(*) n FROM fact f WHERE {WEEK} GROUP BY ds) q "
            "JOIN days d ON q.ds = d.ds AND d.week = 1",
        ),
        (
            "WITH w AS (SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds WHERE d.week = 1) "
            "SELECT count(*) FROM w a JOIN w b ON a.id = b.id",
            "WITH w AS (SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds "
            f"WHERE d.week = 1 AND {WEEK}) SELECT count(*) FROM w a JOIN w b ON a.id = b.id",
        ),
        (
            "SELECT f.id, i.name FROM fact f LEFT JOIN items i ON f.item = i.item "
            "JOIN days d ON f.ds = d.ds WHERE d.week = 1 AND i.name IS NULL",
            "SELECT f.id, i.name FROM fact f LEFT JOIN items i ON f.item = i.item "
            f"JOIN days d ON f.ds = d.ds WHERE d.week = 1 AND i.name IS NULL AND {WEEK}",
        ),
        (
            "SELECT i.name, f.id FROM items i LEFT JOIN fact f ON f.item = i.item "
            "JOIN days d ON f.ds = d.ds WHERE d.week = 1",
            "SELECT i.name, f.id FROM items i LEFT JOIN fact f ON f.item = i.item "
            f"JOIN days d ON f.ds = d.ds WHERE d.week = 1 AND {WEEK}",
        ),
    ],
)
def test_each_form_of_join_reads_one_week_of_three(spark, tmp_path, sql, literal):
    answer = ask(spark, tmp_path, sql, literal=literal)
    assert answer.target.kept == 7
    assert answer.target.total == 21
    assert files_of(answer, "fact") == 7 * files_of_a_day(spark)
    assert answer.partitions_fetched in (7, 14)  # a CTE read twice may be planned twice
    assert answer.rows


@pytest.mark.parametrize(
    ("path", "sql"),
    [
        ("fast", "SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds WHERE d.week = 1"),
        (
            "skeleton",
            "SELECT f.id FROM fact f JOIN days d ON substr(f.ds, 1, 10) = d.ds WHERE d.week = 1",
        ),
        (
            "static",
            "SELECT f.id FROM fact f JOIN fact g ON substr(f.ds, 1, 10) = g.ds "
            "WHERE substr(g.ds, 1, 10) BETWEEN '2020-01-08' AND '2020-01-14'",
        ),
    ],
)
def test_each_path_fetches_lists_and_reads_only_kept_partitions(spark, tmp_path, path, sql):
    """Names cost no partition object; only what is kept is fetched, listed and read."""
    literal = sql.replace("WHERE", f"WHERE {WEEK} AND")
    if path == "static":
        literal += f" AND {WEEK.replace('f.', 'g.')}"
    answer = ask(spark, tmp_path, sql, literal=literal)
    paths = {target.scan.alias: (target.path, target.kept) for target in answer.descriptor.targets}
    assert paths["f"] == (path, 7)
    assert answer.report.work["local task"].partitions_fetched == 0
    assert answer.scanned.partitions_fetched == 7 * len(paths)
    assert answer.scanned.bytes_read <= answer.plain.bytes_read  # whose own pruning is at work
    assert answer.scanned.files_listed < answer.plain.files_listed


def files_of_a_day(spark) -> int:
    frame = spark.sql("SELECT * FROM fact WHERE ds = '2020-01-08'")
    return len(frame.inputFiles())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f.id, d.note FROM fact f LEFT JOIN days d ON f.ds = d.ds AND d.week = 1",
        "SELECT f.id, d.note FROM days d RIGHT JOIN fact f ON f.ds = d.ds AND d.week = 1",
        "SELECT f.id, d.note FROM fact f FULL JOIN days d ON f.ds = d.ds AND d.week = 1",
        "SELECT f.id FROM fact f LEFT ANTI JOIN days d ON f.ds = d.ds AND d.week = 1",
    ],
)
def test_a_preserved_side_is_read_whole(spark, tmp_path, sql):
    answer = ask(spark, tmp_path, sql)
    assert answer.reasons == {"f": "PRESERVED_SIDE"}
    assert files_of(answer, "fact") == 21 * files_of_a_day(spark)
    assert any(row[0] is not None for row in answer.rows)


def test_a_filter_on_null_supplied_rows_does_not_select_keys(spark, tmp_path):
    """Keys of d.note = 'twin' alone would turn matched rows of items into unmatched ones."""
    sql = (
        "SELECT i.item, f.id, d.note FROM fact f JOIN days d ON f.ds = d.ds "
        "RIGHT JOIN items i ON f.item = i.item WHERE d.note IS NULL OR d.note = 'twin'"
    )
    answer = ask(spark, tmp_path, sql)
    assert answer.target.kept == 20


def test_two_partition_columns_are_matched_as_tuples(spark, tmp_path):
    sql = "SELECT h.id FROM hours h JOIN slots s ON h.ds = s.ds AND h.hr = s.hr WHERE s.open"
    literal = (
        "SELECT h.id FROM hours h JOIN slots s ON h.ds = s.ds AND h.hr = s.hr WHERE s.open "
        "AND ((h.ds = '0' AND h.hr = 1) OR (h.ds = '3' AND h.hr IN (2, 3)))"
    )
    answer = ask(spark, tmp_path, sql, literal=literal)
    assert answer.kept == [("0", "1"), ("3", "2"), ("3", "3")]
    assert answer.partitions_fetched == 3
    assert answer.report.work["local task"].partitions_fetched == 0


def test_partitions_must_match_the_keys_of_both_small_tables(spark, tmp_path):
    sql = (
        "SELECT h.id FROM hours h JOIN slots s ON h.ds = s.ds JOIN items i ON h.hr = i.item "
        "WHERE s.open AND i.name IS NOT NULL"
    )
    literal = f"{sql} AND h.ds IN ('0', '3') AND h.hr IN (0, 1)"
    answer = ask(spark, tmp_path, sql, literal=literal)
    assert answer.kept == [("0", "0"), ("0", "1"), ("3", "0"), ("3", "1")]


def test_partitions_must_also_fulfil_the_statements_own_predicates(spark, tmp_path):
    sql = (
        "SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds WHERE d.week = 1 "
        "AND f.ds >= '2020-01-13' AND f.item < 100"
    )
    answer = ask(spark, tmp_path, sql, literal=f"{sql} AND f.ds IN ('2020-01-13', '2020-01-14')")
    assert answer.kept == [("2020-01-13",), ("2020-01-14",)]


def test_two_scans_of_one_table_have_their_own_keys(spark, tmp_path):
    sql = (
        "SELECT a.id, b.id FROM fact a JOIN days d ON a.ds = d.ds AND d.week = 1 "
        "JOIN fact b ON a.item = b.item JOIN days e ON b.ds = e.ds AND e.week = 0"
    )
    answer = ask(spark, tmp_path, sql)
    kept = {target.scan.alias: target.kept for target in answer.descriptor.targets}
    assert kept == {"a": 7, "b": 7}


def test_parameters_are_bound_in_the_key_query_too(spark, tmp_path):
    sql = "SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds WHERE d.week = :week AND f.item = :i"
    answer = ask(spark, tmp_path, sql, parameters={"week": 1, "i": 2})
    assert answer.target.kept == 7
    assert answer.rows


def test_a_temporary_view_gives_keys(spark, tmp_path):
    spark.sql("CREATE OR REPLACE TEMP VIEW w AS SELECT ds k FROM days WHERE week = 1")
    answer = ask(spark, tmp_path, "SELECT f.id FROM fact f JOIN w ON f.ds = w.k")
    assert answer.target.kept == 7


UNSTEADY = (
    "SELECT ds FROM days WHERE rand() < 2",
    "SELECT ds FROM days WHERE note < CAST(current_date() AS STRING)",
    "SELECT ds FROM days LIMIT 100",
    "SELECT ds FROM days TABLESAMPLE (100 PERCENT)",
    "SELECT ds FROM (SELECT ds, row_number() OVER (ORDER BY week) n FROM days) WHERE n < 99",
)


@pytest.mark.parametrize("body", slow_but(UNSTEADY, *UNSTEADY[::2]))
def test_a_view_that_is_not_deterministic_gives_no_keys(spark, tmp_path, body):
    spark.sql(f"CREATE OR REPLACE TEMP VIEW unsteady AS {body}")
    answer = ask(spark, tmp_path, "SELECT f.id FROM fact f JOIN unsteady u ON f.ds = u.ds")
    assert answer.reasons == {"f": "KEY_SOURCE_NOT_DETERMINISTIC"}


NOT_PLANNED = [
    "SELECT id, rank() OVER (PARTITION BY ds ORDER BY id) FROM fact",
    "SELECT id, c FROM fact LATERAL VIEW explode(array(1, 2)) v AS c WHERE id < 5",
    "SELECT id FROM fact UNION SELECT item FROM items",
    "SELECT transform(array(id), x -> x + 1) FROM fact",
    pytest.param("SELECT * FROM fact |> WHERE id < 3", marks=needs_spark("4.0")),
    "TABLE fact",
    pytest.param(
        "BEGIN SELECT id FROM fact WHERE ds = '2020-01-08'; END", marks=needs_spark("4.1")
    ),
    "SELECT count(*) FROM fact GROUP BY 1.5",
    "SELECT id FROM fact outer JOIN items i ON outer.item = i.item",
    pytest.param(
        "FROM fact |> ORDER BY id |> LIMIT 4 |> JOIN days ON fact.ds = days.ds |> SELECT id",
        marks=needs_spark("4.0"),
    ),
    "SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds AND d.week = 1 /* ${spark.no} */",
    "FROM fact SELECT id WHERE id < 3",
    "SELECT id FROM fact f WHERE EXISTS (SELECT 1 FROM (SELECT ds FROM days x "
    "WHERE x.ds = f.ds) y)",
]


@pytest.mark.parametrize("sql", slow_but(NOT_PLANNED, *NOT_PLANNED[::3]))
def test_statements_without_a_plan_pass_through_with_plain_sparks_rows(spark, tmp_path, sql):
    answer = ask(spark, tmp_path, sql)
    assert answer.descriptor.targets == ()
    assert answer.reasons


@pytest.mark.parametrize(
    "sql",
    [
        "WITH c AS (SELECT ds k FROM days) SELECT f.id FROM c LEFT JOIN one USING (k) "
        "JOIN fact f ON f.ds = k",
        "WITH c AS (SELECT ds k FROM days) SELECT f.id FROM c NATURAL LEFT JOIN one "
        "JOIN fact f ON f.ds = k",
        "SELECT f.id FROM one RIGHT JOIN (SELECT ds k FROM days UNION SELECT 'x') c USING (k) "
        "JOIN fact f ON f.ds = k",
    ],
)
def test_a_using_column_of_an_outer_join_has_plain_sparks_rows(spark, tmp_path, sql):
    spark.sql("CREATE OR REPLACE TEMP VIEW one AS SELECT '2020-01-08' k, 1 v")
    assert len(ask(spark, tmp_path, sql).rows) > 3


def test_a_python_function_of_the_partition_column_does_not_prevent_pruning(spark, tmp_path):
    spark.udf.register("py_late", lambda ds: ds is not None and ds > "2020-01-12", "boolean")
    sql = "SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds WHERE d.week = 1 AND py_late(f.ds)"
    answer = ask(spark, tmp_path, sql)
    assert (answer.target.kept, bool(answer.rows)) == (7, True)


def test_a_comment_that_spark_continues_on_the_next_line_changes_no_rows(spark, tmp_path):
    sql = "SELECT f.id FROM fact f JOIN days d ON f.ds = d.ds -- and so on \\\n AND d.week = 1"
    assert len(ask(spark, tmp_path, sql).rows) > 50


def test_a_small_table_named_with_its_database_has_plain_sparks_rows(spark, tmp_path):
    sql = (
        "SELECT f.id FROM fact f JOIN joins.days ON f.ds = joins.days.ds WHERE joins.days.week = 1"
    )
    assert ask(spark, tmp_path, sql).rows


def test_a_large_view_gives_no_keys(spark, tmp_path):
    spark.sql("CREATE OR REPLACE TEMP VIEW vfact AS SELECT * FROM fact")
    answer = ask(spark, tmp_path, "SELECT f.id FROM fact f JOIN vfact v ON f.ds = v.ds")
    assert answer.reasons == {"f": "KEY_SOURCE_NOT_SMALL"}
