"""Statements that write to S3, with each committer: what plain Spark writes, and nothing else."""

from __future__ import annotations

import io
import re

import pytest
from pyarrow import parquet

from airflow_hive_opt.documents.job import Job, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.map_join.command import Command

BINDING = {
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol"
    ),
    "spark.sql.parquet.output.committer.class": (
        "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
    ),
}
COMMITTERS = {
    "default": {},
    **{
        name: {"fs.s3a.committer.name": name, **BINDING}
        for name in ("magic", "directory", "partitioned")
    },
}
QUERY = "SELECT s.item{} FROM s3.sales s JOIN s3.weeks w ON s.day = w.day AND w.week < 2"
ODD = "ds = 'a b/c=50%', n = 1"
STATEMENTS = {
    "into": f"INSERT INTO {{}} PARTITION ({ODD}) {QUERY.format('')}",
    "overwrite": f"INSERT OVERWRITE {{}} PARTITION ({ODD}) {QUERY.format('')}",
    "overwrite some": f"INSERT OVERWRITE {{}} PARTITION (ds = 'b', n) {QUERY.format(', s.item')}",
    "overwrite all": f"INSERT OVERWRITE {{}} PARTITION (ds, n) {QUERY.format(', s.day, s.item')}",
    "nothing": f"INSERT OVERWRITE {{}} PARTITION ({ODD}) {QUERY.format('')} WHERE s.item > 100",
    "create": f"CREATE TABLE {{}} USING parquet AS {QUERY.format('')}",
}
_UNIQUE = re.compile(r"(part-\d+)-[^/.]*")  # a file's name has the IDs of the job and the committer
# The staging committers differ from each other in how they replace partitions.
CASES = [
    (kind, committer)
    for committer in COMMITTERS
    for kind in STATEMENTS
    if committer in ("default", "magic") or kind.startswith("overwrite")
]


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE TABLE s3.sales (item INT) PARTITIONED BY (day STRING) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO s3.sales SELECT CAST(n.id AS INT), concat('d', d.id) "
        "FROM range(3) n CROSS JOIN range(12) d"
    )
    spark.sql(
        "CREATE TABLE s3.weeks STORED AS PARQUET AS "
        "SELECT concat('d', id) AS day, CAST(id AS INT) AS week FROM range(4)"
    )
    yield
    for name in ("sales", "weeks"):
        spark.sql(f"DROP TABLE s3.{name}")


@pytest.fixture
def make(spark, store):
    """A fresh table and a plain twin of it."""

    def made(format_: str = "parquet", filled: bool = True) -> None:
        for name in ("ours", "plain"):
            spark.sql(f"DROP TABLE IF EXISTS s3.{name}")
            if filled:
                columns = "(item INT, ds STRING, n INT)"
                spark.sql(
                    f"CREATE TABLE s3.{name} {columns} USING {format_} PARTITIONED BY (ds, n)"
                )
                spark.sql(
                    f"INSERT INTO s3.{name} VALUES "
                    "(100, 'a b/c=50%', 1), (101, 'b', 1), (102, 'c', 2)"
                )
        store.forget()

    yield made
    for name in ("ours", "plain"):
        spark.sql(f"DROP TABLE IF EXISTS s3.{name}")


def session_with(spark, conf):
    session = spark.newSession()
    for name, value in conf.items():
        session.conf.set(name, value)
    return session


def contents(spark, name):
    spark.sql(f"REFRESH TABLE s3.{name}")
    table = spark.table(f"s3.{name}")
    partitions = []
    if len(table.columns) > 1:
        partitions = [row[0] for row in spark.sql(f"SHOW PARTITIONS s3.{name}").collect()]
    return sorted(map(tuple, table.collect())), partitions


def files(store, name):
    """The objects with data, with names as Spark would give each time, and their items."""
    prefix = f"warehouse/s3.db/{name}/"
    return sorted(
        (
            _UNIQUE.sub(r"\1", key.removeprefix(prefix)),
            parquet.read_table(io.BytesIO(data))["item"].to_pylist() if data else [],
        )
        for key, data in store.objects("lake", prefix).items()
        if not key.endswith(("/", "_SUCCESS"))
    )


@pytest.mark.parametrize(("kind", "committer"), CASES)
def test_what_plain_spark_writes(spark, store, make, kind, committer):
    make(filled=kind != "create")
    conf = COMMITTERS[committer]
    sql = STATEMENTS[kind]
    for turn in range(1 if kind == "create" else 2):
        job = Job(sql.format("s3.ours"), f"s3://lake/attempts/{turn}.json")
        outcome = run_job(session_with(spark, conf), job)
        assert outcome.status is Status.DONE, outcome.message
        assert outcome.summary["kept"] == 2
        session_with(spark, conf).sql(sql.format("s3.plain"))
        assert contents(spark, "ours") == contents(spark, "plain")
        assert files(store, "ours") == files(store, "plain")
    assert store.uploads("lake") == []


@pytest.mark.parametrize("committer", COMMITTERS)
@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_who_has_a_committer_keeps_it(spark, make, committer, format_):
    """Files of ORC get S3A's committer by its name alone, without a class of Spark's."""
    make(format_)
    conf = COMMITTERS[committer]
    if format_ == "orc":
        conf = {name: value for name, value in conf.items() if name not in BINDING}
    sql = f"INSERT OVERWRITE s3.ours PARTITION ({ODD}) SELECT 1"
    command = Command(session_with(spark, conf), sql, {})
    assert command.overwrites_one_partition() is (committer == "default")


def test_a_partition_elsewhere_stays_there(spark, store, make):
    make()
    for name in ("ours", "plain"):
        place = f"s3a://lake/away/{name} of a day"
        spark.sql(f"ALTER TABLE s3.{name} ADD PARTITION (ds='x', n=1) LOCATION '{place}'")
        spark.sql(f"INSERT INTO s3.{name} PARTITION (ds = 'x', n = 1) VALUES (1)")
    sql = f"INSERT OVERWRITE {{}} PARTITION (ds = 'x', n = 1) {QUERY.format('')}"
    outcome = run_job(spark.newSession(), Job(sql.format("s3.ours"), "s3://lake/attempts/1.json"))
    assert outcome.status is Status.DONE, outcome.message
    spark.newSession().sql(sql.format("s3.plain"))
    assert contents(spark, "ours") == contents(spark, "plain")
    assert len(contents(spark, "ours")[0]) == 3 + 6
    assert [key for key in store.objects("lake", "away/ours of a day/") if key.endswith("parquet")]


def test_a_listing_that_lacks_new_files_leaves_the_old_rows(spark, store, make):
    """S3 lists all files at once; other stores have listed some of them late."""
    make()
    before = contents(spark, "ours")
    store.is_late = lambda key: (
        "/.hive-opt-staging" in key and "_temporary" not in key and key.endswith(".parquet")
    )
    job = Job(STATEMENTS["overwrite"].format("s3.ours"), "s3://lake/attempts/1.json")
    outcome = run_job(spark.newSession(), job)
    assert outcome.status is Status.FAILED
    assert "n=1 is as before: the storage lists only 0 of the " in outcome.message
    store.forget()
    assert contents(spark, "ours") == before
    assert run_job(spark.newSession(), job).status is Status.DONE
    assert len(contents(spark, "ours")[0]) == 6 + 2
