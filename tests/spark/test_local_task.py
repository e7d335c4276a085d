"""Bounds, many keys, gates, and what happens between the stages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.functions import udf
from upath import UPath

from airflow_hive_opt.documents.descriptor import DescriptorError
from airflow_hive_opt.documents.gates import GateClosed, NothingToDo, OnEmpty, OnNoPrune
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import keep_report, read_report
from airflow_hive_opt.metastores.thrift.partition_filter import VALUES_A_FILTER
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import Settings
from tests.spark.answers import ask
from tests.spark.stages import job_of, join, map_join, prune, reported

PARTITIONS = 450


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS local_task")
    spark.sql("USE local_task")
    frame = spark.range(PARTITIONS).selectExpr("CAST(id AS INT) id", "CAST(id AS INT) p")
    frame.coalesce(1).write.partitionBy("p").saveAsTable("fact")
    frame.coalesce(1).withColumn("g", frame.id % 3).write.saveAsTable("keys")
    frame.where("id < 30").coalesce(1).write.partitionBy("p").saveAsTable("little")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE local_task CASCADE")


SQL = "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p AND k.id < {}"
OF_LITTLE = SQL.replace("fact", "little")


def test_few_keys_are_matched_with_partition_names(spark, tmp_path):
    answer = ask(spark, tmp_path, SQL.format(10))
    assert answer.target.kept == 10
    assert answer.target.total == PARTITIONS
    assert answer.report.work["local task"].partitions_fetched == 0
    assert answer.target.location.startswith("file:")


def test_a_scan_of_a_view_has_the_location_of_its_table(spark, tmp_path):
    spark.sql("CREATE OR REPLACE VIEW seen AS SELECT id, p AS q FROM little")
    answer = ask(spark, tmp_path, "SELECT f.id FROM seen f JOIN keys k ON f.q = k.p AND k.id < 10")
    assert answer.target.location.startswith("file:")


def test_many_keys_are_matched_with_partition_names(spark, tmp_path):
    answer = ask(spark, tmp_path, SQL.format(VALUES_A_FILTER + 1))
    assert answer.target.kept == VALUES_A_FILTER + 1
    assert answer.report.work["local task"].partitions_fetched == 0
    assert answer.partitions_fetched == VALUES_A_FILTER + 1


def test_many_keys_are_combined_with_the_statements_own_predicates(spark, tmp_path):
    sql = SQL.format(VALUES_A_FILTER + 1) + " WHERE f.p % 2 = 0 AND f.p > :above"
    answer = ask(spark, tmp_path, sql, parameters={"above": 5})
    assert answer.target.kept == (VALUES_A_FILTER + 2) // 2 - 3


@pytest.mark.slow
def test_many_tuples_of_keys_are_matched(spark, tmp_path):
    frame = spark.table("fact").selectExpr("id", "p % 30 a", "p DIV 30 b")
    frame.coalesce(1).write.partitionBy("a", "b").saveAsTable("pairs")
    for below in (190, 430):
        sql = (
            "SELECT f.id FROM pairs f JOIN keys k ON f.a = k.p % 30 AND f.b = k.p DIV 30 "
            f"AND k.id < {below}"
        )
        answer = ask(spark, tmp_path, sql)
        assert (answer.target.kept, answer.target.path) == (below, "skeleton")
        source = f"(SELECT p % 30 a, CAST(p DIV 30 AS INT) b FROM keys WHERE id < {below})"
        sql = f"SELECT f.id FROM pairs f JOIN {source} k ON f.a = k.a AND f.b = k.b"
        assert ask(spark, tmp_path, sql).target.kept == below


def test_predicates_that_are_not_deterministic_do_not_prune(spark, tmp_path):
    function = spark.udf.register("changing", udf(lambda value: value, "int").asNondeterministic())
    assert not function.deterministic
    sql = OF_LITTLE.format(5) + " WHERE changing(f.p) < 3"
    answer = ask(spark, tmp_path, sql)
    assert (answer.target.kept, len(answer.rows)) == (5, 3)


def test_a_key_query_that_fails_leaves_the_scan_whole(spark, tmp_path):
    sql = (
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p "
        "AND (k.id < 3 OR CAST(concat(k.id, 'x') AS INT) = 1) LIMIT 0"
    )
    answer = ask(spark, tmp_path, sql)
    assert answer.reasons == {"f": "KEY_SOURCE_FAILED"}


def test_too_many_keys_leave_the_scan_whole(spark, tmp_path):
    assert ask(spark, tmp_path, OF_LITTLE.format(11), max_keys=11).target.kept == 11
    answer = ask(spark, tmp_path, OF_LITTLE.format(12), max_keys=11)
    assert answer.reasons == {"f": "TOO_MANY_KEYS"}


def test_if_one_of_two_key_sources_is_unusable_the_other_prunes(spark, tmp_path):
    sql = OF_LITTLE.format(50) + " JOIN keys j ON f.p = j.p AND j.id < 3"
    assert ask(spark, tmp_path, sql, max_keys=10).target.kept == 3


def test_a_small_table_above_the_size_setting_gives_no_keys(spark, tmp_path):
    settings = Settings.of({"hive.mapjoin.smalltable.filesize": 10})
    answer = ask(spark, tmp_path, OF_LITTLE.format(10), settings=settings)
    assert answer.reasons == {"f": "KEY_SOURCE_NOT_SMALL"}


def run(spark, tmp_path, sql, **options):
    job = job_of(sql, **options)
    path = UPath(tmp_path) / "1.json"
    result = join(spark, job, prune(spark, job, path), path)
    report = reported(spark, job, result)
    keep_report(report, path)
    return replace(result, report=report)


def test_the_report_is_stored_beside_the_descriptor(spark, tmp_path):
    result = run(spark, tmp_path, SQL.format(2))
    assert sorted(result.rows) == [(0,), (1,)]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["1.json", "1.keys.json", "1.report.json"]
    assert list(result.report.seconds) == ["local task", "map join", "report"]
    assert result.report.application_id.startswith("local-")
    stored = read_report(UPath(tmp_path) / "1.report.json")
    assert stored.summary == result.report.summary()
    read = {found.table: found for found in result.report.reads}["local_task.fact"]
    assert (read.partitions, read.files) == (2, 2)
    assert 0 < read.bytes < 10_000
    kinds = [stage.kind for stage in stored.stages]
    assert kinds == ["LocalWork", "MapReduce", "Fetch"]
    assert "MapJoin of f, k in the map phase" in stored.stages[1].details
    assert stored.stages[1].depends_on == (stored.stages[0].id,)
    assert [SQL[at:].split()[0] for at in stored.stages[1].scans] == ["fact", "keys"]


def test_the_report_tells_what_an_insert_without_pruning_read(spark, tmp_path):
    spark.sql("CREATE TABLE copied (id BIGINT) USING parquet")
    off = {"partition_pruning": False}
    result = run(spark, tmp_path, f"INSERT INTO copied {SQL.format(2)} AND f.p < 5", switches=off)
    read = {found.table: found for found in result.report.reads}["local_task.fact"]
    assert (read.partitions, read.files) == (5, 5)
    assert spark.table("copied").count() == 2


def test_a_report_that_can_not_be_written_does_not_undo_the_run(spark, tmp_path, caplog):
    (tmp_path / "1.report.json").mkdir()
    assert run(spark, tmp_path, SQL.format(2)).rows
    assert "the report can't be stored" in caplog.text


def test_the_plain_statement_runs_if_spark_refuses_the_pruned_one(spark, tmp_path, monkeypatch):
    application = "airflow_hive_opt.spark.application.run"
    monkeypatch.setattr(f"{application}.without_joins", lambda *_: None)
    monkeypatch.setattr(
        "airflow_hive_opt.spark.map_join.texts.restrict", lambda sql, *_: sql + " oh no"
    )
    result = run(spark, tmp_path, SQL.format(2) + " WHERE true")
    assert sorted(result.rows) == [(0,), (1,)]
    (decision,) = result.report.descriptor.decisions
    assert decision.reason == "PASSED_THROUGH"
    assert "PARSE_SYNTAX_ERROR" in decision.message


def test_set_lines_before_the_statement_override_arguments(spark, tmp_path, caplog):
    """They override the arguments, and a switch among them is named once with its argument."""
    script = (
        "-- all off\nSET hive.optimize.mapjoin.partition.pruning = false;\n"
        "SET spark.sql.shuffle.partitions=3;\n" + SQL.format(2)
    )
    old = {"hive.optimize.mapjoin.partition.pruning": "true"}
    job = Job(script, hive_conf=old, switches={"partition_pruning": True})
    session = spark.newSession()
    session.sql("USE local_task")
    path = UPath(tmp_path) / "1.json"
    result = join(session, job, prune(session, job, path), path)
    assert [found.reason for found in result.report.descriptor.decisions] == ["DISABLED"]
    assert session.conf.get("spark.sql.shuffle.partitions") == "3"
    assert len(result.rows) == 2
    assert caplog.text.count("the argument partition_pruning replaces the setting") == 1
    assert "(in effect: partition_pruning=False)" in caplog.text
    with pytest.raises(PlanError, match="line 2, column 8: there is no column nope"):
        prune(session, Job("SET hive.x=1;\nSELECT nope FROM fact"), path)


def test_limits_below_their_minimum_are_refused():
    with pytest.raises(ValueError, match="max_keys must be at least 1"):
        job_of("SELECT 1", max_keys=0)
    with pytest.raises(ValueError, match="max_partitions must be at least 0"):
        job_of("SELECT 1", max_partitions=-1)


def test_a_view_on_a_dropped_table_passes_through(spark, tmp_path):
    spark.sql("CREATE TABLE base (id INT)")
    spark.sql("CREATE VIEW broken AS SELECT * FROM base")
    spark.sql("DROP TABLE base")
    with pytest.raises(AnalysisException, match="base"):
        run(spark, tmp_path, "SELECT * FROM broken")
    run(spark, tmp_path, "DROP VIEW broken")
    assert not spark.catalog.tableExists("broken")


def test_on_empty_decides_what_an_empty_key_set_does(spark, tmp_path):
    none = "SELECT count(*) FROM fact f JOIN keys k ON f.p = k.p AND k.id < 0"
    assert run(spark, tmp_path, none).rows == ((0,),)
    with pytest.raises(NothingToDo, match="no partition of f.*skipped"):
        run(spark, tmp_path, none, on_empty=OnEmpty.SKIP)
    with pytest.raises(GateClosed, match="no partition of f.*'fail'"):
        run(spark, tmp_path, none, on_empty=OnEmpty.FAIL)


def test_max_partitions_stops_the_join_before_it_starts(spark, tmp_path):
    insert = "CREATE TABLE local_task.never AS " + SQL.format(3)
    with pytest.raises(GateClosed, match="would read 3 partitions, but max_partitions is 2"):
        run(spark, tmp_path, insert, max_partitions=2)
    assert not spark.catalog.tableExists("local_task.never")
    assert run(spark, tmp_path, SQL.format(3), max_partitions=3).rows


def test_on_no_prune_decides_what_an_unpruned_statement_does(spark, tmp_path, caplog):
    sql = "SELECT count(*) FROM fact"
    assert run(spark, tmp_path, sql).rows == ((PARTITIONS,),)
    assert run(spark, tmp_path, sql, on_no_prune=OnNoPrune.WARN).rows == ((PARTITIONS,),)
    assert "no scan could be pruned (NO_CONDITION_ON_PARTITION_COLUMN)" in caplog.text
    with pytest.raises(GateClosed, match="on_no_prune is 'fail'"):
        run(spark, tmp_path, sql, on_no_prune=OnNoPrune.FAIL)


def test_a_partition_that_vanishes_between_the_stages_is_not_read(spark, tmp_path):
    spark.sql("CREATE TABLE goes (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    spark.sql("INSERT INTO goes SELECT id, p FROM fact WHERE p < 3")
    job = job_of("SELECT g.id FROM goes g JOIN keys k ON g.p = k.p AND k.id < 2")
    path = UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path)
    spark.sql("ALTER TABLE goes DROP PARTITION (p = 1)")
    spark.sql("INSERT INTO goes PARTITION (p = 1000) VALUES (1000)")
    result = map_join(spark, job, path, pruned.descriptor.digest)
    assert result.rows == ((0,),)
    assert result.report.vanished == 1


def test_insert_overwrite_and_create_table_as_write_the_pruned_rows(spark, tmp_path):
    spark.sql("CREATE TABLE result (id INT) STORED AS PARQUET")
    spark.sql("INSERT INTO result VALUES (-1)")
    result = run(spark, tmp_path, "INSERT OVERWRITE TABLE result " + SQL.format(2))
    assert (result.columns, result.rows) == ((), ())
    assert sorted(row.id for row in spark.table("result").collect()) == [0, 1]
    run(spark, tmp_path, "INSERT INTO result " + SQL.format(1))
    assert sorted(row.id for row in spark.table("result").collect()) == [0, 0, 1]
    run(spark, tmp_path, "CREATE TABLE made STORED AS PARQUET AS " + SQL.format(2))
    assert spark.table("made").count() == 2


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT OVERWRITE TABLE kept SELECT id FROM", "line 1, column"),
        ("INSERT OVERWRITE TABLE kept SELECT id FROM nowhere", "there is no table nowhere"),
        ("INSERT OVERWRITE TABLE kept SELECT nope FROM fact", "line 1, column 36: there is no"),
        (
            "INSERT OVERWRITE TABLE kept SELECT p FROM fact JOIN keys ON fact.p = keys.p",
            "column p is ambiguous",
        ),
    ],
)
def test_wrong_sql_leaves_the_result_untouched(spark, tmp_path, sql, message):
    spark.sql("CREATE TABLE IF NOT EXISTS kept (id INT) STORED AS PARQUET")
    spark.sql("INSERT OVERWRITE TABLE kept VALUES (42)")
    with pytest.raises(PlanError, match=message):
        run(spark, tmp_path, sql)
    assert [row.id for row in spark.table("kept").collect()] == [42]
    assert list(tmp_path.iterdir()) == []


def test_an_altered_descriptor_is_refused_and_nothing_runs(spark, tmp_path):
    job = job_of("CREATE TABLE local_task.nothing AS " + SQL.format(2))
    path = UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path)
    path.write_text(path.read_text().replace('"1"', '"2"'))
    with pytest.raises(DescriptorError, match="is refused: its digest"):
        map_join(spark, job, path, pruned.descriptor.digest)
    assert not spark.catalog.tableExists("local_task.nothing")


def test_tables_whose_partitions_are_not_in_the_metastore_are_read_whole(spark, tmp_path):
    spark.sql("SET spark.sql.hive.manageFilesourcePartitions=false")
    try:
        spark.table("fact").where("p < 3").write.partitionBy("p").saveAsTable("unmanaged")
        sql = "SELECT u.id FROM unmanaged u JOIN keys k ON u.p = k.p"
        assert ask(spark, tmp_path, sql).reasons == {"u": "PARTITIONS_NOT_IN_METASTORE"}
    finally:
        spark.sql("RESET spark.sql.hive.manageFilesourcePartitions")


def test_tables_whose_partitions_the_session_lists_are_read_whole(spark, tmp_path):
    spark.table("fact").where("p < 3").write.partitionBy("p").saveAsTable("listed")
    sql = "SELECT u.id FROM listed u JOIN keys k ON u.p = k.p"
    assert ask(spark, tmp_path, sql).reasons["u"] != "PARTITIONS_NOT_IN_METASTORE"
    spark.sql("SET spark.sql.hive.manageFilesourcePartitions=false")
    try:
        assert ask(spark, tmp_path, sql).reasons == {"u": "PARTITIONS_NOT_IN_METASTORE"}
    finally:
        spark.sql("RESET spark.sql.hive.manageFilesourcePartitions")


def test_the_catalog_knows_tables_views_and_types(spark):
    spark.sql("CREATE TABLE typed (A INT, v VARCHAR(3)) PARTITIONED BY (c CHAR(2), d DATE)")
    catalog = SparkCatalog(spark)
    table = catalog.table("local_task.TYPED")
    assert table.name == "local_task.typed"
    assert [(c.name, c.type) for c in table.columns] == [("a", "int"), ("v", "varchar(3)")]
    assert [(c.name, c.type) for c in table.partition_columns] == [("c", "char(2)"), ("d", "date")]
    assert catalog.table("keys").total_bytes > 0
    assert catalog.table("no_such_table") is None


def test_a_key_that_is_too_long_leaves_the_scan_whole(spark, tmp_path):
    long = "repeat('x', 16385)"
    sql = (
        "SELECT f.id FROM little f JOIN (SELECT p, CAST(p AS STRING) AS t FROM keys WHERE id < 5 "
        f"UNION ALL SELECT 1, {long}) k ON CAST(f.p AS STRING) = substr(k.t, 1, 3)"
    )
    answer = ask(spark, tmp_path, sql)
    assert answer.reasons == {"f": "KEYS_TOO_LARGE"}
    assert ask(spark, tmp_path, sql.replace("16385", "16384")).target.kept


def test_max_key_bytes_limits_all_keys_together(spark, tmp_path):
    sql = (
        "SELECT f.id FROM little f JOIN (SELECT DISTINCT concat(p, repeat('x', 9000)) AS t "
        "FROM keys WHERE id < 5) k ON CAST(f.p AS STRING) = substr(k.t, 1, 1)"
    )
    assert ask(spark, tmp_path, sql, max_key_bytes=20_000).reasons == {"f": "KEYS_TOO_LARGE"}
    assert ask(spark, tmp_path, sql).target.kept


def test_a_partition_list_that_is_too_long_leaves_the_scan_whole(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.local_task.selection._LONGEST_LIST", 100)
    assert ask(spark, tmp_path, OF_LITTLE.format(11)).reasons == {"f": "LIST_TOO_LARGE"}
