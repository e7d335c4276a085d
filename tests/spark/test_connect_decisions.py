"""Over Spark Connect the same decisions as in process: rewriting, keys of data columns, reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from upath import UPath

from airflow_hive_opt.spark.catalog.session_catalog import catalog_of
from airflow_hive_opt.spark.local_task.correlate import StatisticsCatalog, broadcasting, correlate
from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.statement.settings import Settings
from benchmarks.correlation_queries import QUERIES
from tests.cases import slow_but
from tests.spark.stages import job_of, join, prune, reported

ON = Settings.of({"hive.optimize.correlation": "true"})
KEYS = Settings.of({"hive.mapjoin.smalltable.filesize": "10000"}, {"key_predicate": True})
NUMBERS = "SELECT CAST(id % 7 AS INT) AS k, CAST(id AS INT) AS v FROM range(40)"
BUCKETS = "CLUSTERED BY (k) SORTED BY (k) INTO 2 BUCKETS"
LARGE = ("lineitem", "orders", "clicks", "plain")
SETUP = (
    "CREATE DATABASE decisions",
    "USE decisions",
    f"CREATE TABLE plain USING parquet AS {NUMBERS}",
    "ANALYZE TABLE plain COMPUTE STATISTICS FOR COLUMNS k, v",
    f"CREATE TABLE buckets USING parquet {BUCKETS} AS {NUMBERS}",
    f"CREATE TABLE hive_buckets (k INT, v INT) {BUCKETS} STORED AS PARQUET",
    "CREATE VIEW odd AS SELECT k, v FROM plain WHERE rand() < 0.5",
    "CREATE VIEW some AS SELECT k, v FROM plain LIMIT 30",
    "CREATE TABLE ordered USING parquet AS SELECT /*+ COALESCE(1) */ id, "
    "concat('n', lpad(id, 7, '0')) AS name, date_add(DATE'2000-01-01', CAST(id DIV 100 AS INT)) "
    "AS day, hash(id) AS spread FROM range(600000)",
    "CREATE TABLE ordered_by_day USING parquet PARTITIONED BY (ds) AS SELECT "
    "/*+ REPARTITION(3, ds) */ id, name, day, CAST(id % 3 AS STRING) AS ds FROM ordered",
    "CREATE TABLE few USING parquet AS SELECT id, name, day, spread FROM ordered "
    "WHERE id IN (7, 8)",
    "CREATE TABLE days USING parquet AS SELECT CAST(id AS STRING) AS ds, id % 2 AS half "
    "FROM range(3)",
    "CREATE TABLE copied (id BIGINT) USING parquet",
    "CREATE TABLE lineitem (l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, "
    "l_linenumber INT, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), "
    "l_commitdate DATE, l_receiptdate DATE) USING parquet",
    "CREATE TABLE orders (o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice "
    "DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING) USING parquet",
    "CREATE TABLE customer (c_custkey BIGINT, c_name STRING) USING parquet",
    "CREATE TABLE part (p_partkey BIGINT, p_brand STRING, p_container STRING) USING parquet",
    "CREATE TABLE supplier (s_suppkey BIGINT, s_name STRING, s_nationkey BIGINT) USING parquet",
    "CREATE TABLE nation (n_nationkey BIGINT, n_name STRING) USING parquet",
    "CREATE TABLE clicks (uid INT, ts BIGINT, cid INT) USING parquet",
)


@pytest.fixture(scope="module")
def sessions(spark, connect_server):
    """A session in this process and one of a server, with the same tables."""
    with remote_session(connect_server.url, {"spark.sql.adaptive.enabled": "false"}) as remote:
        for session in (spark, remote):
            for statement in SETUP:
                session.sql(statement)
        with conf_set(spark, {"spark.sql.adaptive.enabled": "false"}):
            yield spark, remote
        for session in (spark, remote):
            session.sql("USE default")
            session.sql("DROP DATABASE decisions CASCADE")


def sized(session):
    """The session's catalog, as if some tables were large."""
    catalog = catalog_of(session)
    look_up = catalog.table

    def table(name):
        found = look_up(name)
        large = name.rpartition(".")[2] in LARGE
        return found and replace(found, total_bytes=10**9 if large else 10**7)

    catalog.table = table
    return catalog


def test_buckets_and_statistics_are_the_same_over_spark_connect(sessions):
    found = []
    for session in sessions:
        catalog = StatisticsCatalog(catalog_of(session), ["k"])
        tables = [catalog.table(name) for name in ("plain", "buckets", "hive_buckets", "odd")]
        found.append([(table.buckets, table.distinct_keys(["k"])) for table in tables])
    assert found[0] == found[1]
    assert [keys for _, keys in found[1]] == [7, None, None, None]
    assert [bool(buckets) for buckets, _ in found[1]] == [False, True, True, False]


@pytest.mark.parametrize("table", ["plain", "odd", "some"])
def test_correlated_queries_are_rewritten_alike_over_spark_connect(sessions, table):
    sql = f"SELECT k FROM {table} a WHERE v < (SELECT avg(v) FROM {table} b WHERE b.k = a.k)"
    here, there = (correlate(session, catalog_of(session), sql, ON) for session in sessions)
    assert there == here
    assert bool(there.applied) == (table == "plain")
    if there.applied:
        _, remote = sessions
        assert sorted(remote.sql(there.sql).collect()) == sorted(remote.sql(sql).collect())


@pytest.mark.parametrize("query", slow_but(QUERIES, *list(QUERIES)[::4]))
def test_queries_of_the_benchmark_are_rewritten_alike_over_spark_connect(sessions, query):
    sql = QUERIES[query]
    for settings in (ON, Settings.for_run()):
        here, there = (correlate(session, sized(session), sql, settings) for session in sessions)
        assert there == here


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_aggregates_that_spark_computes_once_are_kept_over_spark_connect(sessions, adaptive):
    sql = (
        "SELECT o.k, sum(a.v) AS total FROM buckets o JOIN plain a ON a.k = o.k "
        "WHERE o.k IN (SELECT k FROM plain GROUP BY k HAVING sum(v) > 100) GROUP BY o.k"
    )
    found = []
    for session in sessions:
        with conf_set(session, {"spark.sql.adaptive.enabled": adaptive}):
            found.append(correlate(session, sized(session), sql, Settings.for_run()))
    assert found[0] == found[1]
    assert bool(found[1].applied) == (adaptive == "true")


def test_broadcast_hints_are_the_same_over_spark_connect(sessions):
    settings = Settings.of({"hive.auto.convert.join.noconditionaltask.size": 20_000_000})
    joined = "SELECT l.k, r.v FROM plain l JOIN buckets r ON l.k = r.k WHERE l.v > :low"
    transformed = joined.replace("l.k, r.v FROM", "TRANSFORM(r.v) USING 'cat' AS v FROM")
    for sql, hinted in (
        (joined, True),
        (f"INSERT INTO plain {joined}", True),
        (transformed, False),
    ):
        found = []
        for session in sessions:
            with conf_set(session, {"spark.sql.autoBroadcastJoinThreshold": "1"}):
                found.append(broadcasting(session, sized(session), sql, settings, {"low": 3}))
        assert found[0] == found[1]
        assert ("BROADCAST" in found[1]) == hinted


CLUSTERED = [
    ("ordered", "id"),
    ("ordered", "name"),
    ("ordered", "day"),
    ("ordered", "spread"),
    ("ordered_by_day", "id"),
    ("ordered_by_day", "name"),
]


@pytest.mark.parametrize(("table", "column"), slow_but(CLUSTERED, *CLUSTERED[::3]))
def test_keys_of_data_columns_are_the_same_over_spark_connect(sessions, tmp_path, table, column):
    sql = f"SELECT o.id, f.name FROM {table} o JOIN few f ON o.{column} = f.{column}"
    job = job_of(sql, settings=KEYS, show_rows=1000)
    found, rows = [], []
    for session in sessions:
        path = UPath(tmp_path) / "descriptor.json"
        report = prune(session, job, path)
        found.append(report.descriptor.row_filters)
        rows.append(sorted(join(session, job, report, path).rows))
    assert rows[0] == rows[1] == sorted(map(tuple, sessions[1].sql(sql).collect()))
    assert found[0] == found[1]
    assert bool(found[1]) == (column != "spread")


def test_the_report_of_a_run_is_the_same_over_spark_connect(sessions, tmp_path):
    sql = (
        "INSERT OVERWRITE TABLE copied SELECT o.id FROM ordered_by_day o JOIN days d "
        "ON o.ds = d.ds WHERE d.half = 1 AND o.id % 100 = 0"
    )
    select = sql[len("INSERT OVERWRITE TABLE copied ") :]
    found = []
    for session in sessions:
        for text in (sql, select):
            path = UPath(tmp_path) / "descriptor.json"
            job = job_of(text)
            result = join(session, job, prune(session, job, path, False), path)
            found.append(reported(session, job, result))
        written, wanted = (
            sorted(map(tuple, frame.collect()))
            for frame in (session.table("copied"), session.sql(select))
        )
        assert written == wanted != []
    here, there = found[:2], found[2:]
    assert [report.eliminated for report in there] == [report.eliminated for report in here]
    assert [scan.short_name for scan in there[0].eliminated] == ["days"]
    assert [report.stages for report in there] == [report.stages for report in here]
    assert [read.partitions for read in there[1].reads] == [1]
    assert [replace(read, total_bytes=0) for read in there[1].reads] == [
        replace(read, total_bytes=0, bytes=there[1].reads[0].bytes) for read in here[1].reads
    ]
    assert there[0].reads == ()  # the server sends no metrics of statements that write
