"""Over Spark Connect, on a real server: the same rows, the same decisions, the same scans."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

import pytest
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.descriptor import query_digest, read
from airflow_hive_opt.documents.gates import GateClosed, Gates
from airflow_hive_opt.restriction.restrict import restrict, ways_of
from airflow_hive_opt.spark.catalog.connect_catalog import ConnectCatalog
from airflow_hive_opt.spark.keys.local_rows import LocalRows
from airflow_hive_opt.spark.map_join.prelaunch import accepts, prelaunch
from airflow_hive_opt.spark.session.connect import end, remote_session
from airflow_hive_opt.spark.session.partition_lookup import scanning
from airflow_hive_opt.spark.session.progress import progress
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.spark.session.spark_compat import settings_of
from airflow_hive_opt.statement.settings import Settings
from tests.cases import slow_but
from tests.spark.situations import first_of_each, setup
from tests.spark.stages import job_of, map_join, prune


@pytest.fixture(scope="module")
def remote(connect_server):
    with remote_session(connect_server.url, {"spark.sql.adaptive.enabled": "false"}) as session:
        yield session


@pytest.fixture(scope="module", autouse=True)
def tables(remote):
    remote.sql("CREATE DATABASE connect")
    remote.sql("USE connect")
    setup(remote)
    for statement in (
        "CREATE TABLE typed (id INT) USING parquet PARTITIONED BY "
        "(Day DATE, price DECIMAL(5,2), code VARCHAR(3), at TIMESTAMP)",
        "INSERT INTO typed SELECT id, date_add(DATE'2020-01-01', CAST(id AS INT)), id / 4, "
        "concat('c', id), timestamp_seconds(1635638400 + 900 * id) FROM range(8)",
        "CREATE TABLE padded (id INT) USING parquet PARTITIONED BY (c CHAR(3))",
        "INSERT INTO padded VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE keys USING parquet AS SELECT Day, price, code, at FROM typed WHERE id < 3",
        "CREATE VIEW unstable AS SELECT ds FROM days WHERE rand() < 2",
        "CREATE FUNCTION mine AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'",
        "CREATE VIEW by_mine AS SELECT ds FROM days WHERE mine(ds) <> 'X'",
        "CREATE TABLE result (id INT, ds STRING) USING parquet",
    ):
        remote.sql(statement)
    yield
    remote.sql("USE default")
    remote.sql("DROP DATABASE connect CASCADE")


def pruned(remote, tmp_path, sql, **options):
    """The restricted frame and the descriptor, as a map join in another task makes them."""
    job = job_of(sql, **options)
    path = UPath(tmp_path) / "descriptor.json"
    report = prune(remote, job, path, hand_over=False)
    assert report.work == {"local task": None}
    descriptor = read(path, query_digest(sql, job.parameters), report.descriptor.digest)
    targets = prelaunch(ConnectCatalog(remote), descriptor, job.parameters)
    ways = ways_of(targets, is_on_glue=False)
    with scanning(remote, set(ways.values())):
        frame = remote.sql(restrict(sql, targets, ways), args=job.parameters)
        frame.collect()
    return frame, descriptor


def rows(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


def partitions_read(frame, table):
    """How many partitions of a table the server read, by what it counted while the frame ran."""
    _, nodes = frame.executionInfo.metrics.extract_graph()
    scans = [node for node in nodes.values() if node.name.endswith(f".{table}")]
    return [
        metric.value for scan in scans for metric in scan.metrics if metric.name == "numPartitions"
    ]


def some_situations():
    """The first situation of each path; ``make test-e2e`` runs one of each group and outcome."""
    asked = set()
    for each in first_of_each():
        new = each.outcome not in asked and each.outcome in ("fast", "skeleton", "static")
        asked.add(each.outcome)
        marks = () if new else pytest.mark.e2e
        yield pytest.param(each, marks=marks, id=f"{each.group}: {each.name}")


@pytest.mark.parametrize("situation", some_situations())
def test_each_situation_has_its_rows_and_outcome_over_spark_connect(remote, tmp_path, situation):
    settings = Settings.of()
    if " huge " in situation.sql:
        settings = Settings.of({"hive.mapjoin.smalltable.filesize": "100"})
    frame, descriptor = pruned(remote, tmp_path, situation.sql, settings=settings)
    assert rows(frame) == rows(remote.sql(situation.sql))
    targets = {target.scan.alias: target for target in descriptor.targets}
    reasons = {found.scan.alias: found.reason for found in descriptor.decisions}
    target = targets.get(situation.alias)
    assert (target.path if target else reasons[situation.alias]) == situation.outcome
    assert (target.kept if target else situation.total) == situation.kept


def test_pruned_plain_and_literal_list_give_the_same_rows_and_scans(remote, tmp_path):
    plain = "SELECT s.id, s.ds FROM sales s JOIN days d ON s.ds = d.ds WHERE d.week = :week"
    parameters = {"week": 1}
    before = settings_of(remote)
    frame, descriptor = pruned(remote, tmp_path, plain, parameters=parameters)
    days = ", ".join(f"'{part.values[0]}'" for part in descriptor.targets[0].partitions)
    by_list = remote.sql(f"{plain} AND s.ds IN ({days})", args=parameters)
    assert rows(frame) == rows(by_list) == rows(remote.sql(plain, args=parameters))
    assert partitions_read(frame, "sales") == partitions_read(by_list, "sales") == [7]
    assert settings_of(remote) == before


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("t.Day = k.Day AND t.code = k.code", 3),
        ("t.price = k.price", 3),
        ("t.at = k.at", 3),
        ("t.price < k.price", 2),
    ],
)
def test_keys_of_every_type_prune_over_spark_connect(remote, tmp_path, condition, kept):
    sql = f"SELECT t.id FROM typed t JOIN keys k ON {condition}"
    frame, descriptor = pruned(remote, tmp_path, sql)
    assert rows(frame) == rows(remote.sql(sql))
    assert [target.kept for target in descriptor.targets] == [kept]
    assert partitions_read(frame, "typed") == [kept]


def test_local_rows_have_the_schema_and_values_of_their_query(remote):
    frame = remote.sql(
        """SELECT * FROM VALUES
        (1Y, 2L, 1.10BD, CAST('123456789012345678901234567890.12345678' AS DECIMAL(38,8)),
         DATE'0001-01-01', TIMESTAMP'1883-11-18 12:03:58.123456', CAST(-0.0 AS DOUBLE),
         CAST(X'C328' AS STRING), true, X'00ff', timestamp_seconds(1635638400)),
        (NULL, NULL, NULL, NULL, DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999',
         CAST('NaN' AS DOUBLE), '', NULL, NULL, timestamp_seconds(1635642000))"""
    )
    with conf_set(remote, {"spark.sql.session.timeZone": "Europe/Berlin"}):  # a fold at the last
        local = LocalRows(remote, frame).frame
        assert local.schema == frame.schema
        exact = "to_json(struct(*, hex(col8) h, unix_micros(col6), unix_micros(col11)))"
        assert rows(local.selectExpr(exact)) == rows(frame.selectExpr(exact))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT s.id FROM sales s JOIN unstable k ON s.ds = k.ds", "NOT_DETERMINISTIC"),
        ("SELECT s.id FROM sales s JOIN by_mine k ON s.ds = k.ds", "NOT_DETERMINISTIC"),
        ("SELECT p.id FROM padded p JOIN (SELECT 'a' c) k ON p.c = k.c", "TYPE_NOT_COMPARABLE"),
    ],
)
def test_scans_whose_keys_may_be_unsafe_over_spark_connect_are_read_whole(
    remote, tmp_path, sql, reason
):
    frame, descriptor = pruned(remote, tmp_path, sql)
    assert [found.reason.removeprefix("KEY_SOURCE_") for found in descriptor.decisions] == [reason]
    assert rows(frame) == rows(remote.sql(sql))


def test_an_insert_in_two_stages_reads_a_partition_added_between(remote, tmp_path):
    select = "SELECT s.id, s.ds FROM arriving s JOIN days d ON s.ds = d.ds WHERE d.week = 1"
    job = job_of(f"INSERT OVERWRITE TABLE result {select}", max_bytes=10**6)
    remote.sql(
        "CREATE TABLE arriving USING parquet PARTITIONED BY (ds) AS SELECT * FROM sales "
        "WHERE ds BETWEEN '2020-01-06' AND '2020-01-16'"
    )
    remote.sql("ALTER TABLE arriving DROP PARTITION (ds = '2020-01-08')")
    path = UPath(tmp_path) / "descriptor.json"
    pruned = prune(remote, job, path)
    assert all(part.bytes for part in pruned.descriptor.targets[0].partitions)
    remote.sql("INSERT INTO arriving SELECT * FROM sales WHERE ds = '2020-01-08'")
    result = map_join(remote, job, path, pruned.descriptor.digest)
    assert (pruned.descriptor.kept, result.report.appeared) == (6, 1)
    assert rows(remote.table("result")) == rows(remote.sql(select))
    with pytest.raises(GateClosed, match="max_bytes is 10"):
        map_join(remote, replace(job, gates=Gates(max_bytes=10)), path, pruned.descriptor.digest)


def test_a_script_is_accepted_without_a_jvm(remote):
    assert accepts(remote, "BEGIN SELECT 1; END", {})


def test_the_log_tells_the_progress_until_the_statement_is_stopped(connect_server, caplog):
    query = "SELECT count(*) FROM range(0, 100000000000, 1, 8) WHERE hash(id, id + 1) = 7"
    failures = []

    def run():
        try:
            mine.sql(query).collect()
        except PySparkException as error:
            failures.append(str(error))

    caplog.set_level(logging.INFO, "airflow_hive_opt.spark.session.progress")
    task = threading.Thread(target=run)
    with remote_session(connect_server.url, {}) as mine:
        with progress(mine, "map join", seconds=0.1):
            task.start()
            deadline = time.monotonic() + 60
            while " of 8 tasks, " not in caplog.text:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        end(mine)
        task.join(60)
        assert "SESSION_CLOSED" in failures[0]
        with pytest.raises(PySparkException, match="SESSION_CLOSED"):  # nothing more can begin
            mine.sql("SELECT 1")


BY_PYTHON = {
    "condition": "days k ON s.ds = k.ds WHERE next_week(k.week) = 2",
    "view": "next_weeks k ON s.ds = k.ds WHERE k.next = 2",
    "scalar subquery": "days k ON s.ds = k.ds WHERE k.week = (SELECT min(next) FROM next_weeks)",
}


@pytest.mark.parametrize("name", slow_but(BY_PYTHON, "view"))
def test_keys_of_python_functions_are_used_only_if_allowed(remote, tmp_path, name):
    remote._client.register_udf(lambda week: week + 1, "int", "next_week")
    remote.sql(
        "CREATE OR REPLACE TEMPORARY VIEW next_weeks AS SELECT ds, next_week(week) AS next "
        "FROM days WHERE week IS NOT NULL"
    )
    sql = f"SELECT s.id FROM sales s JOIN {BY_PYTHON[name]}"
    frame, descriptor = pruned(remote, tmp_path, sql)
    assert [each.reason for each in descriptor.decisions] == ["PYTHON_FUNCTION"]
    allowed = Settings.of(switches={"python_functions": True})
    fewer, descriptor = pruned(remote, tmp_path, sql, settings=allowed)
    assert [target.kept for target in descriptor.targets] == [7]
    literal = sql.replace(
        "sales s", "(SELECT * FROM sales WHERE ds BETWEEN '2020-01-08' AND '2020-01-14') s"
    )
    assert rows(frame) == rows(fewer) == rows(remote.sql(sql)) == rows(remote.sql(literal))


def test_a_scalar_subquery_is_not_taken_for_a_python_function(remote, tmp_path):
    sql = (
        "SELECT s.id FROM sales s JOIN days k ON s.ds = k.ds "
        "WHERE k.week = (SELECT min(week) + 1 FROM days)"
    )
    _, descriptor = pruned(remote, tmp_path, sql)
    assert [target.kept for target in descriptor.targets] == [7]
