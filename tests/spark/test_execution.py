"""A statement runs once: its text is chosen before any work begins."""

from __future__ import annotations

import threading

import pytest
from pyspark.errors import AnalysisException
from upath import UPath

from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.map_join.execution import execute
from airflow_hive_opt.spark.session.spark_compat import settings_of
from tests.spark.stages import job_of, prune


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS once")
    spark.sql("CREATE TABLE once.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO once.fact SELECT CAST(a.id AS INT), CAST(b.id AS INT) "
        "FROM range(4) a CROSS JOIN range(10) b"
    )
    spark.sql("CREATE TABLE once.keys STORED AS PARQUET AS SELECT * FROM VALUES (1), (2) AS k(p)")
    yield
    spark.sql("DROP DATABASE once CASCADE")


@pytest.fixture
def result(spark):
    spark.sql("DROP TABLE IF EXISTS once.result")
    spark.sql("CREATE TABLE once.result (id INT) PARTITIONED BY (ds STRING) STORED AS PARQUET")
    spark.sql("INSERT INTO once.result VALUES (100, '0')")

    def rows() -> list[tuple]:
        spark.sql("REFRESH TABLE once.result")
        return sorted(map(tuple, spark.table("once.result").collect()))

    return rows


def job(tmp_path, sql: str, **options) -> Job:
    return Job(sql, str(tmp_path / "1.json"), Stages.BOTH, gates=Gates(), **options)


# Derby takes no two partitions whose names differ by a space at the end alone.
FAILS_AFTER_THE_COMMIT = (
    "INSERT INTO once.result SELECT f.id, IF(f.p = 1, '0', '1 ') "
    "FROM once.fact f JOIN once.keys k ON f.p = k.p"
)


def test_a_write_whose_metastore_fails_after_the_commit_runs_once(spark, tmp_path, result):
    """Spark wraps it into an AnalysisException, as if nothing had run."""
    spark.sql("INSERT INTO once.result VALUES (101, '1')")
    outcome = run_job(spark, job(tmp_path, FAILS_AFTER_THE_COMMIT))
    ours = result()
    assert outcome.status is not Status.DONE
    spark.sql("DROP TABLE once.result")
    spark.sql("CREATE TABLE once.result (id INT) PARTITIONED BY (ds STRING) STORED AS PARQUET")
    spark.sql("INSERT INTO once.result VALUES (100, '0')")
    spark.sql("INSERT INTO once.result VALUES (101, '1')")
    with pytest.raises(AnalysisException):
        spark.sql(FAILS_AFTER_THE_COMMIT)
    assert ours == result()
    assert len([row for row in ours if row[1] == "0"]) == 5


def test_a_pruned_statement_that_spark_refuses_is_replaced_before_writing(spark, result):
    wide = "INSERT INTO once.result PARTITION (ds = 'x') SELECT id FROM once.fact WHERE p = 1"
    for refused in (
        wide.replace("id FROM", "nope FROM"),
        wide.replace("once.fact", "once.missing"),
        wide.replace("SELECT id", "SELECT id, id"),
        f"{wide} AND",
    ):
        answer = execute(spark, (refused, wide), {}, 5)
        assert answer.text == wide
        assert answer.objection
        assert result() == [(0, "x"), (1, "x"), (2, "x"), (3, "x"), (100, "0")]
        spark.sql("ALTER TABLE once.result DROP PARTITION (ds = 'x')")


def test_a_statement_that_fails_while_it_runs_is_not_run_again(spark, result):
    fails = "INSERT INTO once.result PARTITION (ds = 'x') SELECT raise_error('no') FROM once.fact"
    plain = "INSERT INTO once.result PARTITION (ds = 'x') SELECT id FROM once.fact"
    with pytest.raises(Exception, match="no"):
        execute(spark, (fails, plain), {}, 5)
    assert result() == [(100, "0")]


def test_parameters_are_bound_while_planning(spark, result):
    sql = "INSERT OVERWRITE once.result PARTITION (ds = 'x') SELECT id FROM once.fact WHERE p = :p"
    answer = execute(spark, (f"{sql} ", sql), {"p": 3}, 5)
    assert (answer.text, answer.objection) == (f"{sql} ", None)
    assert result() == [(0, "x"), (1, "x"), (2, "x"), (3, "x"), (100, "0")]


def test_a_select_is_planned_once(spark):
    """The restricted text is not explained first, because that would fetch its partitions twice."""
    sql = "SELECT f.id FROM once.fact f WHERE f.p IN (1, 2)"
    catalog = SparkCatalog(spark)
    before = catalog.work()
    spark.sql(sql).take(2)
    plain = catalog.work() - before
    before = catalog.work()
    execute(spark, (sql, f"{sql} "), {}, 2)
    assert catalog.work() - before == plain


FOLDER = "DIRECTORY '{folder}' STORED AS PARQUET"


@pytest.mark.parametrize(
    ("made", "into"),
    [
        ("STORED AS PARQUET", "once.written"),  # by Spark's writers, and by Hive's
        ("STORED AS TEXTFILE", "once.written"),
        ("PARTITIONED BY (n INT) STORED AS PARQUET", "once.written PARTITION (n = 1)"),
        ("STORED AS PARQUET LOCATION '{folder}'", FOLDER),
    ],
)
def test_a_statement_that_writes_is_planned_once(spark, tmp_path, made, into):
    catalog = SparkCatalog(spark)
    sql = "SELECT f.id FROM once.fact f WHERE f.p IN (1, 2)"
    made, into = (text.format(folder=tmp_path) for text in (made, into))
    fetched = []
    for run in (
        spark.sql,
        lambda text: execute(spark, (text, f"{text} "), {}, 2),
    ):
        spark.sql("DROP TABLE IF EXISTS once.written")
        spark.sql(f"CREATE TABLE once.written (id INT) {made}")
        before = catalog.work()
        run(f"INSERT OVERWRITE {into} {sql}")
        fetched.append((catalog.work() - before).partitions_fetched)
        spark.sql("REFRESH TABLE once.written")
        assert sorted(row.id for row in spark.table("once.written").collect()) == sorted(
            [0, 1, 2, 3] * 2
        )
    assert fetched[1] <= fetched[0]
    assert fetched[1] == 2


CONDITIONS = ("f.p + 0 = k.p", "f.p * 2 = k.p * 2 AND k.p = {}", "f.p = k.p AND k.p = {}")


def test_concurrent_runs_in_one_session_do_not_disturb_each_other(spark, tmp_path):
    """Views of the local task and settings of the map join are each run's own."""
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    wrong: list[str] = []

    def work(number: int) -> None:
        for turn in range(2):
            condition = CONDITIONS[(number + turn) % 3].format(1 + number % 2)
            sql = f"SELECT f.id, f.p FROM once.fact f JOIN once.keys k ON {condition}"
            folder = tmp_path / f"{number}-{turn}"
            done = run_job(spark, job(folder, sql))
            plain = spark.sql(sql).collect()
            if sorted(done.rows) != sorted(tuple(map(str, row)) for row in plain):
                wrong.append(f"{sql}: {done}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    views = spark.sql("SHOW VIEWS IN once").collect()
    assert not [view.viewName for view in views if view.viewName.startswith("__")]


def test_a_run_leaves_the_session_as_it_was(spark, tmp_path):
    before = settings_of(spark)
    done = run_job(spark, job(tmp_path, "SET spark.sql.shuffle.partitions=3;\nSELECT 1 AS a"))
    assert done.rows == (("1",),)
    assert settings_of(spark) == before


def test_temporary_views_of_the_local_task_have_unique_names(spark, tmp_path):
    """Over Spark Connect two runs may share a session."""
    spark.range(3).createOrReplaceTempView("__keys")
    spark.range(3).createOrReplaceTempView("__partition_names")
    sql = "SELECT f.id, f.p FROM once.fact f JOIN once.keys k ON f.p + 0 = k.p"
    prune(spark, job_of(sql), UPath(tmp_path) / "1.json")
    assert spark.table("__keys").count() == spark.table("__partition_names").count() == 3
    spark.catalog.dropTempView("__keys")
    spark.catalog.dropTempView("__partition_names")


LATE = "TIMESTAMP'2020-01-01 00:00:00'"


@pytest.mark.parametrize("into", ["INTO once.late", "OVERWRITE once.late PARTITION (n = 1)"])
def test_literals_are_read_in_the_time_zone_of_the_run(spark, tmp_path, into):
    """Spark's parser reads the time zone of the JVM's active session, which is another one."""
    made = "(id INT, at TIMESTAMP) PARTITIONED BY (n INT) STORED AS PARQUET"
    for name in ("late", "late_plain"):
        spark.sql(f"DROP TABLE IF EXISTS once.{name}")
        spark.sql(f"CREATE TABLE once.{name} {made}")
    number = ", 1" if "INTO" in into else ""
    sql = (
        f"INSERT {into} SELECT f.id, {LATE}{number} FROM once.fact f JOIN once.keys k ON f.p = k.p"
    )
    zone = "Asia/Tokyo" if spark.conf.get("spark.sql.session.timeZone") != "Asia/Tokyo" else "UTC"
    done = run_job(spark, job(tmp_path, f"SET spark.sql.session.timeZone={zone};\n{sql}"))
    assert done.status is Status.DONE, done.message
    assert "kept 2 of 10" in done.message
    plain = spark.newSession()
    plain.conf.set("spark.sql.session.timeZone", zone)
    plain.sql(sql.replace("once.late", "once.late_plain"))
    spark.sql("REFRESH TABLE once.late")
    ours, theirs = (
        sorted(map(tuple, spark.table(f"once.{name}").collect())) for name in ("late", "late_plain")
    )
    assert ours == theirs
    assert len(ours) == 8


@pytest.fixture
def written_texts(spark):
    """A partition's value that no key of ``numbers`` can be compared with."""
    spark.sql("CREATE DATABASE texts")
    for statement in (
        "CREATE TABLE texts.fact (id INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
        "INSERT INTO texts.fact VALUES (1, 'a b'), (2, '7'), (3, '8')",
        "CREATE TABLE texts.days USING parquet AS SELECT 'a b' AS ds, 9 AS id",
        "CREATE TABLE texts.numbers USING parquet AS SELECT 7 AS a",
        "CREATE TABLE texts.result (id INT) USING parquet",
    ):
        spark.sql(statement)
    yield spark
    spark.sql("DROP DATABASE texts CASCADE")


@pytest.mark.parametrize("into", ["", "INSERT INTO texts.result "])
def test_a_partition_list_that_would_make_spark_fail_passes_through(written_texts, tmp_path, into):
    """Spark casts the one listed value to a number in the optimizer, which fails in ANSI mode."""
    sql = (
        f"{into}SELECT z.id FROM (SELECT f.id, f.ds FROM texts.fact f JOIN texts.days d "
        "ON f.ds = d.ds AND f.id = d.id GROUP BY f.id, f.ds) z JOIN texts.numbers n ON n.a = z.ds"
    )
    plain = written_texts.sql(sql.removeprefix(into)).collect()
    job = Job(sql, str(tmp_path / "1.json"), Stages.BOTH)
    outcome = run_job(written_texts, job)
    assert outcome.status is Status.DONE, outcome.message
    assert list(outcome.rows) == plain == []
    assert written_texts.table("texts.result").count() == 0
    (decision,) = outcome.summary["decisions"]
    ansi = written_texts.conf.get("spark.sql.ansi.enabled") == "true"  # not before Spark 4
    assert decision["reason"] == ("PASSED_THROUGH" if ansi else "PRUNED")
