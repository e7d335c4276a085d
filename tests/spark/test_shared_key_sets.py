"""Key sets that several runs share: the keys are read once, and never taken if they may differ."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.documents.job import Stages, Status
from airflow_hive_opt.documents.key_set import _FORMAT
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.keys.key_query import KeyQuery
from tests.spark.shared_keys import aged, codes, counted, run, why
from tests.spark.stages import job_of

DAYS = "FROM fact f JOIN days d ON f.p = d.p WHERE d.week = 1"
FIVE = [
    f"SELECT {columns} {DAYS}{rest}"
    for columns, rest in (
        ("f.id, d.week", ""),
        ("f.id", " AND f.id > 20"),
        ("f.p, count(*)", " GROUP BY f.p"),
        ("max(f.id)", ""),
        ("f.id, f.p", " AND f.p <> 8"),
    )
]


@pytest.fixture(scope="module", autouse=True)
def database(spark):
    spark.sql("CREATE DATABASE shared_keys")
    spark.sql("USE shared_keys")
    fact = spark.range(60).selectExpr("id", "CAST(id % 20 AS INT) p")
    fact.coalesce(1).write.partitionBy("p").saveAsTable("fact")
    yield
    spark.sql("USE default")
    for name in ("shared_keys", "shared_other"):
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


@pytest.fixture
def days(spark):
    """A small table of 20 days; it is made anew for each test."""
    make_days(spark)
    yield
    spark.sql("DROP TABLE IF EXISTS shared_keys.days")


@pytest.fixture
def asked(monkeypatch):
    """The sources whose key query has run."""
    return counted(monkeypatch)


def make_days(spark, name="shared_keys.days", p="INT"):
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    days = spark.range(20).selectExpr(f"CAST(id AS {p}) p", "CAST(id / 7 AS INT) week")
    days.coalesce(1).write.saveAsTable(name)
    aged(spark, name)


def scanned(summary):
    """What Spark read, and the partitions that the keys kept."""
    fetched = summary["work"]["map join"]["partitions_fetched"]
    return summary["reads"], summary["kept"], fetched, summary["eliminated"]


def documents(tmp_path):
    return sorted((tmp_path / "keys").glob("*.json"))


def test_five_statements_run_their_key_query_once_and_scan_the_same(spark, tmp_path, days, asked):
    found = [run(spark, tmp_path, sql) for sql in FIVE]
    assert asked == ["days"]
    assert [codes(summary) for summary in found] == [["ABSENT"], *[["TAKEN"]] * 4]
    alone = [run(spark, tmp_path, sql, key_sets="") for sql in FIVE]
    assert asked == ["days"] * 6
    assert [summary["key_sets"] for summary in alone] == [[]] * 5
    assert [scanned(summary) for summary in found] == [scanned(summary) for summary in alone]
    assert [summary["kept"] for summary in found] == [7, 7, 7, 7, 6]


def test_a_statement_takes_what_fits_and_reads_the_rest(spark, tmp_path, days, asked):
    spark.sql("CREATE TABLE IF NOT EXISTS odd AS SELECT 1 AS p UNION ALL SELECT 9")
    aged(spark, "shared_keys.odd")
    run(spark, tmp_path, FIVE[0])
    both = (
        "SELECT f.id, g.id FROM fact f JOIN days d ON f.p = d.p JOIN odd o ON f.p = o.p "
        "JOIN fact g ON g.id = f.id WHERE d.week = 1"
    )
    found = run(spark, tmp_path, both)
    assert (asked, sorted(codes(found))) == (["days", "odd"], ["ABSENT", "TAKEN"])
    assert codes(run(spark, tmp_path, both)) == ["TAKEN", "TAKEN"]
    assert asked == ["days", "odd"]


@pytest.mark.parametrize("stages", [Stages.BOTH, Stages.LOCAL_TASK])
def test_both_forms_share_keys(spark, tmp_path, days, asked, stages):
    run(spark, tmp_path, FIVE[0], stages=stages)
    assert codes(run(spark, tmp_path, FIVE[1])) == ["TAKEN"]
    assert asked == ["days"]


# For each type: keys, and values that are no keys.
KEYS = {
    "tinyint": (["1", "2", "NULL"], ["3", "4"]),
    "smallint": (["1", "300"], ["2", "4"]),
    "bigint": (["3", "9000000000"], ["1", "9"]),
    "string": (["'a'", "'it''s'", "'a,b], [c'", "'null'", "'é😀'", "''", "NULL"], ["'z'"]),
    "date": (["DATE'1582-10-10'", "DATE'9999-12-31'", "NULL"], ["DATE'1970-01-01'"]),
}


@pytest.mark.parametrize("type_", KEYS)
@pytest.mark.parametrize("condition", ["k.v = f.v", "k.v <= f.v"])
def test_keys_of_each_type_are_taken_as_they_were(spark, tmp_path, asked, type_, condition):
    """By equality as values, by another comparison as a relation of Spark's."""
    keys, others = KEYS[type_]
    spark.sql(f"CREATE TABLE keys (v {type_}) USING parquet")
    spark.sql(f"CREATE TABLE typed (id INT, v {type_}) USING parquet PARTITIONED BY (v)")
    rows = (", ".join(f"(CAST({value} AS {type_}))" for value in each) for each in (keys, others))
    own, more = rows
    spark.sql(f"INSERT INTO keys VALUES {own}")
    spark.sql(f"INSERT INTO typed SELECT 1, v FROM VALUES {own}, {more} AS t(v)")
    aged(spark, "keys")
    try:
        sql = f"SELECT f.id, f.v FROM typed f JOIN keys k ON {condition}"
        first, second = (run(spark, tmp_path, sql) for _ in range(2))
        assert (codes(first), codes(second)) == (["ABSENT"], ["TAKEN"])
        assert scanned(first) == scanned(second)
        assert asked == ["keys"]
    finally:
        spark.sql("DROP TABLE typed")
        spark.sql("DROP TABLE keys")


def test_unique_keys_that_were_taken_remove_the_same_join(spark, tmp_path, days, asked):
    sql = "SELECT f.id FROM fact f JOIN days d ON f.p = d.p WHERE d.week = 1"
    first, second = (run(spark, tmp_path, sql) for _ in range(2))
    assert [each["table"] for each in second["eliminated"]] == ["shared_keys.days"]
    assert scanned(first) == scanned(second)
    assert asked == ["days"]


def test_only_parameters_of_the_key_query_count(spark, tmp_path, days, asked):
    sql = "SELECT f.id FROM fact f JOIN days d ON f.p = d.p WHERE d.week = :week AND f.id > :least"
    for week, least in ((1, 3), (1, 30), (2, 30), (1, 40)):
        run(spark, tmp_path, sql, parameters={"week": week, "least": least})
    assert not any("int 1" in path.read_text() for path in documents(tmp_path))
    assert asked == ["days", "days"]
    assert codes(run(spark, tmp_path, sql, parameters={"week": "1", "least": 3})) == ["ABSENT"]


def inserted(spark):
    spark.sql("INSERT INTO days VALUES (19, 1)")
    aged(spark, "days")


def overwritten(spark):
    spark.sql("INSERT OVERWRITE days SELECT CAST(id AS INT), 1 FROM range(18, 20)")
    aged(spark, "days")


def of_another_type(spark):
    make_days(spark, p="BIGINT")


def in_tokyo(spark):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")


def in_other_ansi_mode(spark):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false" if before == "true" else "true")


def with_other_records(spark):
    spark.conf.set("textinputformat.record.delimiter", "|")


def with_merged_columns(spark):
    spark.conf.set("spark.sql.orc.mergeSchema", "true")


def in_another_database(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS shared_other")
    make_days(spark, "shared_other.days")
    spark.sql("INSERT INTO shared_other.days VALUES (19, 1)")
    aged(spark, "shared_other.days")
    spark.sql("CREATE OR REPLACE VIEW shared_other.fact AS SELECT * FROM shared_keys.fact")
    spark.sql("USE shared_other")


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (inserted, "TABLES_CHANGED", "the files of shared_keys.days changed since"),
        (overwritten, "TABLES_CHANGED", "the files of shared_keys.days changed since"),
        (
            of_another_type,
            "OTHER_COLUMNS",
            "shared_keys.days changed from p int, week int to p big",
        ),
        (in_tokyo, "OTHER_SESSION", "spark.sql.session.timeZone was "),
        (in_other_ansi_mode, "OTHER_SESSION", "spark.sql.ansi.enabled was "),
        (with_other_records, "OTHER_SESSION", "spark.hadoop.* was "),
        (with_merged_columns, "OTHER_SESSION", "spark.sql.orc.mergeSchema was not set in"),
        (
            in_another_database,
            "OTHER_TABLES",
            "the current database was shared_keys in the key set",
        ),
    ],
)
def test_a_key_set_that_does_not_fit_is_refused_and_replaced(
    spark, tmp_path, days, asked, caplog, change, code, named
):
    session = spark.newSession()
    session.sql("USE shared_keys")
    sql = "SELECT f.id, d.week FROM fact f JOIN days d ON f.p = d.p WHERE d.week = 1"
    run(session, tmp_path, sql)
    change(session)
    refused = run(session, tmp_path, sql)
    assert (codes(refused), asked) == ([code], ["days"] * 2)
    assert named in why(refused)
    assert f"key set {tmp_path}/keys, keys of days: {code}" in caplog.text
    text = descriptor_to_text(load(UPath(refused["uri"])))
    assert f"\nkeys of days in the key set: {code}: " in text
    assert codes(run(session, tmp_path, sql)) == ["TAKEN"]
    assert len(documents(tmp_path)) == 1


def test_other_limits_refuse_a_key_set(spark, tmp_path, days, asked):
    run(spark, tmp_path, FIVE[0])
    found = run(spark, tmp_path, FIVE[0], max_keys=3)
    assert (codes(found), found["reason"]) == (["OTHER_SESSION"], "TOO_MANY_KEYS")
    assert why(found).startswith("max_keys and max_key_bytes were 100,000 and")
    assert codes(run(spark, tmp_path, FIVE[0])) == ["TAKEN"]  # too many keys are not kept


def test_a_changed_view_or_table_below_it_refuses_a_key_set(spark, tmp_path, days, asked):
    spark.sql("CREATE OR REPLACE VIEW weeks AS SELECT * FROM days WHERE week = 1")
    sql = "SELECT f.id, d.week FROM fact f JOIN weeks d ON f.p = d.p"
    run(spark, tmp_path, sql)
    assert codes(run(spark, tmp_path, sql)) == ["TAKEN"]
    inserted(spark)
    assert codes(run(spark, tmp_path, sql)) == ["TABLES_CHANGED"]
    spark.sql("CREATE OR REPLACE VIEW weeks AS SELECT * FROM days WHERE week = 2")
    found = run(spark, tmp_path, sql)
    assert codes(found) == ["OTHER_TABLES"]
    assert "the definition of shared_keys.weeks, a view, has changed" in why(found)
    spark.sql("DROP VIEW weeks")


def test_what_nothing_identifies_is_not_shared(spark, tmp_path, days, asked):
    session = spark.newSession()
    session.sql("USE shared_keys")
    session.sql("CREATE TEMPORARY VIEW mine AS SELECT * FROM days")
    session.udf.register("twice", lambda week: 2 * week, "int")
    session.sql("CREATE TABLE nested (p INT, week INT) USING parquet")
    session.sql("INSERT INTO nested SELECT * FROM days")
    location = session.sql("DESCRIBE FORMATTED nested").where("col_name = 'Location'").first()[1]
    (Path(location.removeprefix("file:")) / "inside").mkdir()
    aged(session, "nested")
    session.sql("CREATE TABLE fresh USING parquet AS SELECT * FROM days")
    aged(session, "fresh", seconds=-1000)
    join = "SELECT f.id, d.week FROM fact f JOIN {} d ON f.p = d.p WHERE d.week = 1"
    for sql, named in (
        (join.format("mine"), "mine"),
        (join.format("days").replace("d.week = 1", "twice(d.week) = 2"), "twice"),
        (join.format("nested"), "shared_keys.nested has folders in "),
        (join.format("fresh"), "shared_keys.fresh has just changed, and may change again"),
    ):
        for _ in range(2):
            found = run(session, tmp_path, sql, switches={"python_functions": True})
            assert codes(found) == ["NOT_SHARED"], sql
            assert named in why(found)
    assert len(asked) == 8
    session.sql("CACHE TABLE days")
    try:
        found = run(session, tmp_path, FIVE[0])
    finally:
        session.sql("UNCACHE TABLE days")
    assert (codes(found), "cached rows" in why(found)) == (["NOT_SHARED"], True)
    assert documents(tmp_path) == []
    for name in ("nested", "fresh"):
        session.sql(f"DROP TABLE {name}")


def truncated(path, other):
    path.write_bytes(path.read_bytes()[:-30])


def altered(path, other):
    path.write_text(path.read_text().replace('"8"', '"9"', 1))


def of_another_query(path, other):
    path.write_bytes(other.read_bytes())


def of_another_version(path, other):
    path.write_text(path.read_text().replace('"version": 1', '"version": 99', 1))


def no_json(path, other):
    path.write_bytes(b"\xff\x00 nothing")


def of_another_kind(path, other):
    path.write_text(path.read_text().replace('"kind": "key set"', '"kind": "descriptor"', 1))


def a_folder(path, other):
    path.unlink()
    path.mkdir()


def sealed_nonsense(path, other):
    """A key that is no number, with the digest that belongs to it."""
    document = json.loads(path.read_text())
    del document["sha256"]
    document["keys"]["values"][0][0] = "eight"
    text = json.dumps(document, separators=(",", ":"))
    seal = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(f'{text[:-1]},"sha256":"{seal}"}}')


@pytest.mark.parametrize(
    "damage",
    [
        *(truncated, altered, of_another_query, of_another_version, no_json),
        *(of_another_kind, a_folder, sealed_nonsense),
    ],
)
def test_a_damaged_or_foreign_document_costs_only_the_key_query(
    spark, tmp_path, days, asked, damage
):
    run(spark, tmp_path, FIVE[0].replace("week = 1", "week = 2"))
    (other,) = documents(tmp_path)
    run(spark, tmp_path, FIVE[0])
    (mine,) = set(documents(tmp_path)) - {other}
    damage(mine, other)
    found = run(spark, tmp_path, FIVE[0])
    assert (codes(found), asked) == (["NOT_VALID"], ["days"] * 3)
    if damage is not a_folder:
        assert codes(run(spark, tmp_path, FIVE[0])) == ["TAKEN"]


def test_a_key_set_that_can_not_be_written_costs_nothing(spark, tmp_path, days, asked, caplog):
    (tmp_path / "keys").write_text("a file")
    for _ in range(2):
        assert codes(run(spark, tmp_path, FIVE[0])) in (["ABSENT"], ["NOT_VALID"])
    assert "the keys of days can't be kept" in caplog.text
    assert asked == ["days"] * 2


def test_two_runs_at_once_write_one_key_set(spark, tmp_path, days, monkeypatch):
    """Both read the keys, as neither waits for the other."""
    begun, read = Barrier(2, timeout=60), KeyQuery.run

    def waiting(query):
        begun.wait()
        return read(query)

    monkeypatch.setattr(KeyQuery, "run", waiting)
    sessions = [spark.newSession() for _ in range(2)]
    for session in sessions:
        session.sql("USE shared_keys")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda session: run(session, tmp_path, FIVE[0]), sessions))
    assert [codes(summary) for summary in found] == [["ABSENT"], ["ABSENT"]]
    (path,) = documents(tmp_path)
    assert _FORMAT.read(UPath(path)).keys.types == ("int",)
    assert [each.name for each in (tmp_path / "keys").iterdir()] == [path.name]
    assert codes(run(spark, tmp_path, FIVE[0])) == ["TAKEN"]  # it would wait for another query


def test_keys_of_a_table_that_changes_while_they_are_read_are_not_kept(
    spark, tmp_path, days, monkeypatch
):
    read = KeyQuery.run

    def changing(query):
        found = read(query)
        inserted(spark)
        return found

    monkeypatch.setattr(KeyQuery, "run", changing)
    job = job_of(FIVE[0], path=str(tmp_path / "0.json"), key_sets=str(tmp_path / "keys"))
    assert run_job(spark, job).status is Status.DONE
    assert documents(tmp_path) == []


def test_a_session_that_has_listed_the_files_before_takes_no_older_ones(spark, tmp_path, days):
    """Spark keeps the list of a table's files in a session: the key set must not be older."""
    session = spark.newSession()
    session.sql("USE shared_keys")
    session.table("days").count()
    inserted(spark)
    first = run(session, tmp_path, FIVE[0])
    assert (codes(first), first["kept"]) == (["ABSENT"], 8)
    second = run(spark, tmp_path, FIVE[0])
    assert (codes(second), second["kept"]) == (["TAKEN"], 8)


def test_partitioned_small_tables_are_the_same_with_the_same_partitions(spark, tmp_path, asked):
    spark.sql("CREATE TABLE dim (p INT) PARTITIONED BY (day STRING) STORED AS PARQUET")
    spark.sql("INSERT INTO dim PARTITION (day = '1') VALUES (1), (2)")
    aged(spark, "dim")
    spark.sql("ANALYZE TABLE dim COMPUTE STATISTICS")
    sql = "SELECT f.id FROM fact f JOIN dim d ON f.p = d.p WHERE d.day >= '1'"
    assert codes(run(spark, tmp_path, sql)) == ["ABSENT"]
    assert codes(run(spark, tmp_path, sql)) == ["TAKEN"]
    spark.sql("INSERT INTO dim PARTITION (day = '2') VALUES (3)")
    aged(spark, "dim")
    spark.sql("ANALYZE TABLE dim COMPUTE STATISTICS")
    changed = run(spark, tmp_path, sql)
    assert (codes(changed), changed["kept"]) == (["TABLES_CHANGED"], 3)
    assert "the partitions of shared_keys.dim changed" in why(changed)
    assert asked == ["dim", "dim"]
    spark.sql("DROP TABLE dim")
