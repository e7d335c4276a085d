"""Reads of tables on S3 through S3A: rows, partitions, files and requests."""

from __future__ import annotations

from collections import Counter

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.provider.earlier_runs import skipped_keys_in
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from tests.services.s3_server import Kind
from tests.worker.tasks import Tasks, hand_over

# Names that a store, a URI and Hive write in different ways.
ODD = ["a b", "50%", "x=y", "a/b", "é", "{z}", "a+b", "100%25", "it's", "#1?"]
PLAIN = [f"day-{number:03}" for number in range(30)]
SQL = "SELECT f.id, f.day FROM s3.fact f JOIN s3.days d ON f.day = d.day WHERE d.n < {}"


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE TABLE s3.fact (id BIGINT) PARTITIONED BY (day STRING) STORED AS PARQUET")
    days = spark.createDataFrame(list(enumerate(ODD + PLAIN)), "n INT, day STRING")
    days.coalesce(1).write.saveAsTable("s3.days", format="parquet")
    spark.sql("INSERT INTO s3.fact SELECT n, day FROM s3.days")
    # in another bucket, where Spark reads a partition but can't write it
    place = "s3a://elsewhere/of a day/100%"
    spark.sql("SELECT 77L AS id").coalesce(1).write.parquet(place)
    spark.sql(f"ALTER TABLE s3.fact ADD PARTITION (day = 'elsewhere') LOCATION '{place}'")
    spark.sql("INSERT INTO s3.days VALUES (-1, 'elsewhere')")
    yield
    for name in ("fact", "days"):
        spark.sql(f"DROP TABLE s3.{name}")


def fresh(spark):
    """A session in which nothing is known of the tables' files."""
    for name in ("fact", "days"):
        spark.sql(f"REFRESH TABLE s3.{name}")
    return spark.newSession()


def shown(rows) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in rows)


def counted(spark, store, read):
    """What ``read`` answers, and its partitions, files and requests."""
    session = fresh(spark)
    catalog = SparkCatalog(session)
    before = catalog.work()
    store.forget()
    found = read(session)
    return found, catalog.work() - before, store.log


def of_tables(log, kind=None) -> int:
    """How many requests were not for documents of the attempt, or how many of a kind.

    Those that read files do not count: S3A keeps small files in memory for a while.
    """
    return sum(
        not found.key.startswith("attempts/")
        and found.kind is not Kind.GET
        and kind in (None, found.kind)
        for found in log
    )


def ours(spark, store, sql, **options):
    job = Job(sql, "s3://lake/attempts/1.json", show_rows=100, **options)
    outcome, work, log = counted(spark, store, lambda session: run_job(session, job))
    assert outcome.status is Status.DONE, outcome.message
    return outcome, work, log


@pytest.mark.parametrize("matching", [1, 5, 10, 20])
def test_a_run_reads_the_folders_of_its_partitions_only(spark, store, matching):
    sql = SQL.format(matching)
    days = ", ".join(f'"{day}"' for day in (ODD + PLAIN)[:matching])
    literal = f"{sql} AND f.day IN ({days}, 'elsewhere')"
    outcome, work, log = ours(spark, store, sql)
    plain, plain_work, plain_log = counted(spark, store, lambda session: session.sql(sql).collect())
    listed, *_ = counted(spark, store, lambda session: session.sql(literal).collect())
    assert shown(outcome.rows) == shown(plain) == shown(listed)
    assert len(plain) == matching + 1
    assert outcome.summary["kept"] == matching + 1
    assert work.partitions_fetched == matching + 1
    assert plain_work.partitions_fetched == len(ODD + PLAIN) + 1
    assert of_tables(plain_log, Kind.LIST) - of_tables(log, Kind.LIST) >= 40 - matching - 4
    assert of_tables(log) < of_tables(plain_log)


def test_all_partitions_match(spark, store):
    """The keys cost reads of the small table, but only in the first run."""
    sql = SQL.format(1_000)

    def plain():
        return counted(spark, store, lambda session: session.sql(sql).collect())

    plain()
    first, _, log = ours(spark, store, sql)
    rows, _, plain_log = plain()
    again, _, later_log = ours(spark, store, sql, skipped_keys=skipped_keys_in(first.summary))
    assert shown(first.rows) == shown(again.rows) == shown(rows)
    assert len(rows) == 41
    big = "warehouse/s3.db/fact"
    assert named(log, big) == named(later_log, big) == named(plain_log, big)
    assert of_tables(later_log) <= of_tables(plain_log) < of_tables(log)
    assert named(log, "attempts/") == {Kind.PUT: 2}


def named(log, prefix: str) -> Counter[Kind]:
    kinds = Counter(found.kind for found in log if found.key.startswith(prefix))
    del kinds[Kind.GET]
    return kinds


@pytest.mark.parametrize(("written", "read"), [("s3", "s3a"), ("s3a", "s3"), ("s3", "s3")])
def test_the_two_stages_name_the_descriptors_place_differently(spark, store, written, read):
    """Airflow's file systems and Hadoop's have their own names for S3."""
    sql = SQL.format(3)
    job = Job(sql, f"{written}://lake/attempts/split/1.json", Stages.LOCAL_TASK, show_rows=100)
    pruned = run_job(fresh(spark), job)
    assert pruned.status is Status.DONE, pruned.message
    assert load(UPath(pruned.summary["uri"])).digest == pruned.summary["digest"]
    join = Job(
        sql,
        f"{read}://lake/attempts/split/2.json",
        Stages.MAP_JOIN,
        show_rows=100,
        descriptor=f"{read}://lake/attempts/split/1.json",
        digest=pruned.summary["digest"],
    )
    outcome, work, _ = counted(spark, store, lambda session: run_job(session, join))
    assert outcome.status is Status.DONE, outcome.message
    assert shown(outcome.rows) == shown(spark.sql(sql).collect())
    assert work.partitions_fetched == 2 * 4  # at prelaunch, and by the scan


@pytest.mark.parametrize("changed", [False, True])
def test_the_workers_list(spark, store, metastore_service, tmp_path, monkeypatch, changed):
    """The worker reads as s3:// what Spark reads as s3a://, and both see the same changes."""
    uri = f"hive-metastore://{metastore_service.host}:{metastore_service.port}"
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", uri)
    tasks = Tasks(fresh(spark), tmp_path)
    spark.sql("CREATE TABLE s3.few (n INT, day STRING) STORED AS PARQUET")
    try:
        spark.sql("INSERT INTO s3.few VALUES (0, 'a b'), (1, 'day-003'), (2, '50%')")
        sql = "SELECT f.id, f.day FROM s3.fact f JOIN s3.few d ON f.day = d.day"
        between = ["INSERT INTO s3.few VALUES (4, 'x=y')"] if changed else []
        handed = hand_over(tasks, sql, between=between, stages=Stages.BOTH)
        assert handed.reader == ("spark" if changed else "worker")
        assert handed.partitions_fetched == (4 if changed else 3)
    finally:
        spark.sql("DROP TABLE s3.few")
