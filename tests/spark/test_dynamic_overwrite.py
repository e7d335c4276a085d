"""Over Spark Connect, one overwritten partition keeps its old rows until the new ones are there."""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from packaging.version import Version
from pyspark.errors import PySparkException
from upath import UPath

from tests.cases import slow_but
from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.spark.map_join.dynamic_overwrite import (
    NotEmptied,
    dynamic_overwrite,
    empty_if_unwritten,
    has_overwritten,
)
from airflow_hive_opt.spark.map_join.execution import execute
from airflow_hive_opt.spark.session.connect import remote_session
from tests.spark.stages import job_of, join, prune
from tests.spark.twin_tables import make_twins

FORMATS = ("USING parquet", "USING csv", "STORED AS PARQUET", "STORED AS ORC")
HEAD = "INSERT OVERWRITE TABLE {} PARTITION (ds = '2026-01-31', n = 3) "
QUERY = "SELECT s.amount, s.note FROM over.sales s JOIN over.days d ON s.d = d.d WHERE d.d > {}"
NEW = [(5, "a"), (6, "b")]


def make_sources(session):
    """Makes the tables that the query reads."""
    session.sql("CREATE TABLE over.days USING parquet AS SELECT 1 AS d")
    session.sql(
        "CREATE TABLE over.sales (amount INT, note STRING, d INT) USING parquet PARTITIONED BY (d)"
    )
    session.sql("INSERT INTO over.sales VALUES (5, 'a', 1), (6, 'b', 1), (7, 'c', 2)")


def make_filled(session, how):
    """Makes the table and its twin, with rows in two partitions; returns the table's folder."""
    folder = make_twins(session, "over", "amount INT, note STRING", how)
    for name in ("result", "plain"):
        for ds in ("2026-01-30", "2026-01-31"):
            spec = f"PARTITION (ds = '{ds}', n = 3)"
            session.sql(f"INSERT INTO over.{name} {spec} VALUES (1, 'old'), (2, 'old')")
    return folder


@pytest.fixture(scope="module")
def remote(connect_server):
    with remote_session(connect_server.url, {}) as session:
        session.sql("CREATE DATABASE over")
        make_sources(session)
        yield session
        session.sql("DROP DATABASE over CASCADE")


@pytest.fixture
def make(remote):
    """A table with rows in two partitions, and a plain twin of it."""

    def made(how: str = FORMATS[0]) -> Path:
        return make_filled(remote, how)

    return made


def with_list(sql, least):
    """The statement with the query's partitions as a literal list."""
    partitions = "false" if least else "d IN (1)"
    listed = f"SELECT amount, note FROM over.sales WHERE {partitions}"
    return sql.replace(QUERY.format(least), listed)


def state(session, table):
    """The table's rows and its partitions."""
    session.sql(f"REFRESH TABLE over.{table}")
    rows = Counter(map(tuple, session.table(f"over.{table}").collect()))
    partitions = sorted(row[0] for row in session.sql(f"SHOW PARTITIONS over.{table}").collect())
    return rows, partitions


def run(session, tmp_path, sql):
    """Runs the statement with what it prunes, as a task does."""
    job, path = job_of(sql), UPath(tmp_path) / "1.json"
    return join(session, job, prune(session, job, path), path)


def writes_as_plain_spark(session, tmp_path, least):
    """An old and a new partition get what plain Spark writes, and a literal list of partitions."""
    for ds in ("2026-01-31", "2026-02-01"):
        sql = HEAD.replace("2026-01-31", ds) + QUERY.format(least)
        assert dynamic_overwrite(session, sql.format("over.result"), {}) is not None
        report = run(session, tmp_path, sql.format("over.result")).report
        assert [len(target.partitions) for target in report.descriptor.targets] == [1 - least]
        overwritten = state(session, "result")
        for plain in (sql, with_list(sql, least)):
            session.sql(plain.format("over.plain"))
            assert state(session, "plain") == overwritten


def ran_as(session, sql):
    """Executes the statement; returns what was there before, if it ran as a dynamic overwrite."""
    found = []

    @contextmanager
    def begins(beginning):
        found.append(beginning.before)
        yield

    execute(session, (sql,), {}, 0, begins)
    return found[0]


def runs_dynamically(session, sql):
    """Executes the statement; returns whether it ran as a dynamic overwrite."""
    return ran_as(session, sql) is not None


@pytest.mark.parametrize("how", slow_but(FORMATS, FORMATS[0], FORMATS[2]))
@pytest.mark.parametrize("least", [0, 1], ids=["rows", "none"])
def test_a_partition_gets_what_plain_spark_writes(remote, make, tmp_path, how, least):
    make(how)
    writes_as_plain_spark(remote, tmp_path, least)
    assert sum(state(remote, "result")[0].values()) == (2 if least else 6)


def test_the_old_rows_stay_if_the_query_fails(remote, make):
    folder = make()
    before = state(remote, "result")
    failing = HEAD + "SELECT amount, raise_error('no') FROM over.sales"
    with pytest.raises(PySparkException, match="no"):
        execute(remote, (failing.format("over.result"),), {}, 0)
    assert state(remote, "result") == before
    with pytest.raises(PySparkException, match="no"):
        remote.sql(failing.format("over.plain"))
    assert state(remote, "plain") != before  # plain Spark has deleted them
    assert not list(folder.glob(".spark-staging*"))


@pytest.mark.parametrize("where", ["d > 0", "d > 9"], ids=["rows", "none"])
def test_parallel_statements_overwrite_their_own_partitions(remote, make, connect_server, where):
    make()
    for number in range(4, 8):
        spec = f"PARTITION (ds = '2026-01-31', n = {number})"
        remote.sql(f"INSERT INTO over.result {spec} VALUES (1, 'old')")
    wait = "java_method('java.lang.Thread', 'sleep', 300L)"
    slow = f"SELECT amount, {wait} FROM over.sales WHERE {where}"
    failed = []

    def day(number):
        try:
            with remote_session(connect_server.url, {}) as session:
                execute(
                    session,
                    (HEAD.format("over.result").replace("n = 3", f"n = {number}") + slow,),
                    {},
                    0,
                )
        except Exception as error:  # noqa: BLE001 - of another thread
            failed.append(error)

    threads = [threading.Thread(target=day, args=(number,)) for number in range(4, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    rows, _ = state(remote, "result")
    each = dict.fromkeys(range(4, 8), 3) if where == "d > 0" else {}
    assert Counter(row[3] for row in rows.elements()) == {3: 4, **each}


def test_parallel_statements_may_overwrite_the_same_partition(remote, make, connect_server):
    """The last one to end wins, and none fails because files vanish while it looks at them."""
    make()
    failed = []

    def overwrite(number):
        try:
            with remote_session(connect_server.url, {}) as session:
                for _ in range(4):
                    rows = f"SELECT {number}, 'new' FROM range(0, 4, 1, 4)"
                    execute(session, (HEAD.format("over.result") + rows,), {}, 0)
        except Exception as error:  # noqa: BLE001 - of another thread
            failed.append(error)

    threads = [threading.Thread(target=overwrite, args=(number,)) for number in (7, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    of_day = [row[:2] for row in state(remote, "result")[0].elements() if row[2] == "2026-01-31"]
    assert of_day in ([(7, "new")] * 4, [(8, "new")] * 4)


@pytest.mark.parametrize("least", [0, 1], ids=["rows", "none"])
def test_files_of_a_killed_job_stay_out_of_the_table(remote, make, least):
    folder = make()
    remote.sql("CREATE OR REPLACE TEMPORARY VIEW other AS SELECT 99, 'killed'")
    remote.sql((HEAD + "SELECT * FROM other").format("over.plain"))
    place = "ds=2026-01-31/n=3"
    for table in (folder, folder.with_name("plain")):
        left = table / "_temporary" / "0" / "task_1" / place
        left.mkdir(parents=True)
        for file in (folder.with_name("plain") / place).glob("part-*"):
            (left / file.name.replace("part-", "part-9")).write_bytes(file.read_bytes())
    sql = HEAD + QUERY.format(least)
    remote.sql(sql.format("over.plain"))
    assert runs_dynamically(remote, sql.format("over.result"))
    of_day = [(row[0], row[1]) for row in state(remote, "result")[0] if row[2] == "2026-01-31"]
    assert sorted(of_day) == ([] if least else NEW)
    assert any(row[0] == 99 for row in state(remote, "plain")[0])  # plain Spark adds them


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(HEAD.replace("3", "03") + QUERY.format(0), id="another name of its folder"),
        pytest.param(HEAD + "(note, amount) SELECT note, amount FROM over.sales", id="columns"),
        pytest.param(HEAD + "BY NAME SELECT note, amount FROM over.sales", id="by name"),
        pytest.param(HEAD.replace("-31", "-29") + "TABLE over.few", id="a table"),
    ],
)
def test_other_statements_run_as_they_are(remote, make, statement):
    make()
    remote.sql("CREATE OR REPLACE TEMPORARY VIEW few AS SELECT amount, note FROM over.sales")
    statement = statement.replace("over.few", "few")
    remote.sql(statement.format("over.plain"))
    assert not runs_dynamically(remote, statement.format("over.result"))
    assert state(remote, "result") == state(remote, "plain")


def test_tables_that_spark_does_not_write_itself_are_left_to_it(remote, make, tmp_path):
    sql = HEAD + QUERY.format(0)
    make("STORED AS TEXTFILE")
    assert not runs_dynamically(remote, sql.format("over.result"))
    make()
    spec = "PARTITION (ds = '2026-01-31', n = 3)"
    for name in ("result", "plain"):
        place = tmp_path / "elsewhere" / name
        remote.sql(f"ALTER TABLE over.{name} {spec} SET LOCATION '{place}'")
    remote.sql(sql.format("over.plain"))
    assert not runs_dynamically(remote, sql.format("over.result"))
    assert state(remote, "result") == state(remote, "plain")


def test_a_setting_that_names_a_committer_counts(remote, make):
    make()
    sql = (HEAD + QUERY.format(0)).format("over.result")
    protocol = "spark.sql.sources.commitProtocolClass"
    of_spark = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    remote.conf.set(protocol, of_spark)
    try:
        assert not runs_dynamically(remote, sql)
    finally:
        remote.conf.unset(protocol)
    assert runs_dynamically(remote, sql)


def test_spark_fetches_few_partitions_for_it(remote, make, monkeypatch):
    """It fetches those that have all values but the last."""
    make()
    sql = (HEAD + QUERY.format(0)).format("over.result")
    assert "PARTITION (`ds` = '2026-01-31', `n`) SELECT" in dynamic_overwrite(remote, sql, {}).text
    monkeypatch.setattr("airflow_hive_opt.spark.map_join.dynamic_overwrite._MOST", 1)
    assert dynamic_overwrite(remote, sql, {}) is not None
    remote.sql("ALTER TABLE over.result ADD PARTITION (ds = '2026-01-31', n = 4)")
    assert dynamic_overwrite(remote, sql, {}) is None
    assert dynamic_overwrite(remote, sql.replace("-31", "-30"), {}) is not None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT amount FROM over.sales",
        "SELECT amount, note, 1 FROM over.sales",
        "SELECT amount, nothing FROM over.sales",
        "SELECT amount, note FROM over.result",
        "SELECT amount, note FROM over.of_result",
        "PARTITION (ds = 'twice') SELECT amount, note FROM over.sales",
    ],
)
def test_what_spark_refuses_it_still_refuses(remote, make, query):
    """A dynamic overwrite may read its own table; a retry would read what it has written."""
    make()
    remote.sql("CREATE OR REPLACE VIEW over.of_result AS SELECT * FROM over.result")
    before = state(remote, "result")
    sql = HEAD.format("over.result") + query
    with pytest.raises(PySparkException) as plain:
        remote.sql(sql)
    with pytest.raises(PySparkException) as found:
        execute(remote, (sql,), {}, 0)
    assert str(found.value) == str(plain.value)
    assert state(remote, "result") == before


def test_the_text_may_be_of_any_form(remote, make):
    make()
    for query in (
        "SELECT amount, note FROM over.sales WHERE d = 1 -- the end",
        "WITH c AS (SELECT * FROM over.sales) SELECT amount, note FROM c WHERE d = 1",
        "(SELECT amount, note FROM over.sales WHERE d = 1)",
        "VALUES (5, 'a'), (6, 'b')",
        "SELECT amount, note FROM over.sales WHERE d = 1 ORDER BY amount DESC LIMIT 5",
        "SELECT /*+ REPARTITION(2) */ amount, note FROM over.sales WHERE d = 1 UNION SELECT 5, 'a'",
        "FROM over.sales SELECT amount, note WHERE d = 1",
        "SELECT amount, note FROM over.sales WHERE d = 1 ; -- the end ;",
        "SELECT amount, note FROM over.sales WHERE d = 1;; /* the ; end */ ;",
        "SELECT amount, note FROM over.sales WHERE d = 1 AND note <> '; -- no comment'",
        "SELECT a AS same, note AS same FROM (SELECT amount a, note FROM over.sales WHERE d = 1)",
    ):
        remote.sql("TRUNCATE TABLE over.result")
        assert runs_dynamically(remote, HEAD.format("over.result") + query), query
        rows = [row[:2] for row in state(remote, "result")[0].elements()]
        assert sorted(rows) == NEW, query
    head = HEAD.format("over.result")
    assert not runs_dynamically(remote, f"{head} SELECT amount, DEFAULT FROM over.sales")
    by_name = f"{head} SELECT :amount, note FROM over.sales WHERE d = 2"
    execute(remote, (by_name,), {"amount": 8}, 0)
    rows, _ = state(remote, "result")
    assert [row[:2] for row in rows] == [(8, "c")]


def test_names_and_types_of_any_kind(remote):
    for name in ("result", "plain"):
        remote.sql(f"DROP TABLE IF EXISTS over.{name}")
        remote.sql(
            f"CREATE TABLE over.{name} (`a b` STRUCT<x: INT> NOT NULL, `select` CHAR(3), `n``s` "
            "DECIMAL(5,2), Day DATE) USING parquet PARTITIONED BY (Day)"
        )
    rows = "named_struct('x', 1), 'y', 2.5"
    for query in (f"SELECT {rows}", f"SELECT {rows} WHERE 1 = 2"):
        sql = f"INSERT OVERWRITE over.{{}} PARTITION (DAY = '2026-01-31') {query}"
        remote.sql(sql.format("plain"))
        assert runs_dynamically(remote, sql.format("result"))
        assert state(remote, "result") == state(remote, "plain")
    wrong = "INSERT OVERWRITE over.result PARTITION (day = '2026-13-31') SELECT " + rows
    assert dynamic_overwrite(remote, wrong, {}) is None
    assert dynamic_overwrite(remote, wrong.replace("2026-13-31", "2026-1-1"), {}) is None


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("ARRAY<STRUCT<x: INT, y: INT>>", "array(named_struct('y', 1, 'x', 2))"),
        ("MAP<STRING, STRUCT<x: INT, y: INT>>", "map('k', named_struct('y', 1, 'x', 2))"),
        ("STRUCT<a: ARRAY<STRUCT<x: INT, y: INT>>>", "named_struct('a', array(struct(1, 2)))"),
        ("STRUCT<x: INT, y: INT>", "named_struct('y', 1, 'x', 2)"),
    ],
)
def test_fields_of_nested_types_are_matched_by_position(remote, type_, value):
    for name in ("result", "plain"):
        remote.sql(f"DROP TABLE IF EXISTS over.{name}")
        remote.sql(
            f"CREATE TABLE over.{name} (a {type_}, d STRING) USING parquet PARTITIONED BY (d)"
        )
    sql = f"INSERT OVERWRITE over.{{}} PARTITION (d = '1') SELECT {value}"
    remote.sql(sql.format("plain"))
    assert runs_dynamically(remote, sql.format("result"))
    plain, found = (remote.table(f"over.{name}").collect() for name in ("plain", "result"))
    assert found == plain


def test_errors_name_the_users_own_line(remote, make):
    make()
    sql = HEAD.replace("n =", "\n n =") + "\n\nSELECT 1, 'a'\nFROM range(1)\nWHERE 1 / id > 3"
    told = []
    for run_it in (remote.sql, lambda text: execute(remote, (text,), {}, 0)):
        with pytest.raises(PySparkException) as error:
            run_it(sql.format("over.result"))
        told.append(re.search(r"== SQL.*\(line (\d+),", str(error.value))[1])
    assert told == ["6", "6"]


def test_only_a_partition_with_the_same_files_is_emptied(remote, make):
    make()
    sql = (HEAD + QUERY.format(0)).format("over.result")
    before = dynamic_overwrite(remote, sql, {}).before
    remote.sql(HEAD.format("over.result") + "VALUES (1, 'new')")
    found = state(remote, "result")
    empty_if_unwritten(remote, before)
    assert state(remote, "result") == found
    empty_if_unwritten(remote, dynamic_overwrite(remote, sql, {}).before)
    rows, partitions = state(remote, "result")
    assert partitions == found[1]
    assert {row[2] for row in rows} == {"2026-01-30"}
    before = dynamic_overwrite(remote, sql, {}).before
    assert not before.files
    empty_if_unwritten(remote, before)
    assert state(remote, "result") == (rows, partitions)


def test_a_new_partition_without_rows_leaves_no_folder_behind(remote, make):
    folder = make()
    sql = (HEAD + QUERY.format(1)).replace("2026-01-31", "2026-03-01")
    assert runs_dynamically(remote, sql.format("over.result"))
    remote.sql(sql.format("over.plain"))
    assert state(remote, "result") == state(remote, "plain")
    assert list((folder / "ds=2026-03-01").iterdir()) == [folder / "ds=2026-03-01" / "n=3"]
    assert not (folder / "_temporary").exists()


@pytest.mark.parametrize("removed", [0, 1])
def test_a_partition_is_not_emptied_if_another_job_has_added_rows(remote, make, removed):
    """That job may also have removed one of the old files."""
    folder = make() / "ds=2026-01-31" / "n=3"
    remote.sql(HEAD.format("over.result").replace("OVERWRITE", "INTO") + "VALUES (2, 'old')")
    sql = (HEAD + QUERY.format(1)).format("over.result")
    before = dynamic_overwrite(remote, sql, {}).before
    for file in sorted(folder.glob("part-*"))[:removed]:
        file.unlink()
    remote.sql(HEAD.format("over.result").replace("OVERWRITE", "INTO") + "VALUES (3, 'added')")
    found = state(remote, "result")
    with pytest.raises(NotEmptied, match="another job has changed it"):
        empty_if_unwritten(remote, before)
    assert state(remote, "result") == found


@pytest.mark.parametrize("how", slow_but(FORMATS, FORMATS[0]))
def test_the_files_of_a_statement_say_that_it_has_overwritten(remote, make, how):
    folder = make(how) / "ds=2026-01-31" / "n=3"
    head = HEAD.format("over.result")
    before = dynamic_overwrite(remote, head + "VALUES (5, 'a')", {}).before
    assert not has_overwritten(remote, before)
    before = ran_as(remote, head + "VALUES (5, 'a')")
    assert has_overwritten(remote, before)
    assert all(file.name.startswith(before.basename) for file in folder.glob("[!.]*"))
    remote.sql(head.replace("OVERWRITE", "INTO") + "VALUES (6, 'added')")
    assert has_overwritten(remote, before)
    after = ran_as(remote, head + "VALUES (7, 'b')")
    assert not has_overwritten(remote, before)
    assert has_overwritten(remote, after)
    assert not has_overwritten(remote, ran_as(remote, head + "SELECT 1, 'none' WHERE 1 = 2"))


def test_files_beside_or_outside_a_partition_do_not_count(remote, make):
    """Another job has made the folder before they were moved there; the metastore has no entry.

    Between two file systems they are copied, so some may still be where they were written.
    """
    table = make()
    folder = table / "ds=2026-01-31" / "n=3"
    head = HEAD.format("over.result")
    before = ran_as(remote, head + "VALUES (5, 'a')")
    (file,) = folder.glob("part-*")
    left = (
        table
        / f".spark-staging-{file.name[28:64]}"
        / "ds=2026-01-31"
        / "n=3"
        / "part-00001.parquet"
    )
    left.parent.mkdir(parents=True)
    left.write_bytes(b"rows")
    assert not has_overwritten(remote, before)
    left.unlink()
    assert has_overwritten(remote, before)
    nested = folder / "n=3"
    nested.mkdir()
    for file in folder.glob("*part-*"):
        file.rename(nested / file.name)
    assert not has_overwritten(remote, before)
    for file in nested.glob("*part-*"):
        file.rename(folder / file.name)
    nested.rmdir()
    assert has_overwritten(remote, before)
    spec = before.partition.removeprefix("`spark_catalog`.`over`.`result` ")
    remote.sql(f"ALTER TABLE over.result {spec} SET LOCATION '{folder.with_name('n=4')}'")
    assert not has_overwritten(remote, before)
    kept = folder.rename(folder.with_name("kept"))
    remote.sql(f"ALTER TABLE over.result DROP {spec}")
    kept.rename(folder)
    assert not has_overwritten(remote, before)


def test_the_files_of_hives_buckets_count(remote):
    remote.sql("DROP TABLE IF EXISTS over.result")
    remote.sql(
        "CREATE TABLE over.result (a INT) PARTITIONED BY (d STRING) "
        "CLUSTERED BY (a) INTO 2 BUCKETS STORED AS PARQUET"
    )
    before = ran_as(remote, "INSERT OVERWRITE over.result PARTITION (d = '1') VALUES (1), (2)")
    assert has_overwritten(remote, before)


@pytest.mark.parametrize("column", ["p CHAR(4)", "p VARCHAR(4)", "`x:y` STRING", "`a%b` STRING"])
def test_folders_with_other_names_are_left_to_spark(remote, tmp_path, column):
    name = column.split()[0]
    for table in ("result", "plain"):
        remote.sql(f"DROP TABLE IF EXISTS over.{table}")
        remote.sql(
            f"CREATE TABLE over.{table} (a INT, {column}) USING parquet PARTITIONED BY ({name}) "
            f"LOCATION '{tmp_path / table}'"
        )
        remote.sql(f"INSERT INTO over.{table} PARTITION ({name} = 'ab') VALUES (1)")
        remote.sql(f"ALTER TABLE over.{table} DROP PARTITION ({name} = 'ab')")
    sql = f"INSERT OVERWRITE over.{{}} PARTITION ({name} = 'ab') SELECT 2 WHERE 1 = 2"
    remote.sql(sql.format("plain"))
    assert not runs_dynamically(remote, sql.format("result"))
    assert state(remote, "result") == state(remote, "plain")


def test_a_setting_for_the_names_of_files_counts(remote, make):
    folder = make() / "ds=2026-01-31" / "n=3"
    remote.conf.set("mapreduce.output.basename", "mine")
    try:
        before = ran_as(remote, HEAD.format("over.result") + "VALUES (5, 'a')")
        assert remote.conf.get("mapreduce.output.basename") == "mine"
    finally:
        remote.conf.unset("mapreduce.output.basename")
    assert before.basename.startswith("mine-")
    assert has_overwritten(remote, before)
    assert [file.name[:5] for file in folder.glob("[!._]*")] == ["mine-"]


def test_folders_with_special_names(remote, make, tmp_path):
    place = tmp_path / "a [b] %20 c{d}"
    remote.sql("DROP TABLE IF EXISTS over.result")
    remote.sql(
        f"CREATE TABLE over.result (amount INT, note STRING, ds STRING, n INT) USING parquet "
        f"PARTITIONED BY (ds, n) LOCATION '{place}'"
    )
    for rows in ("VALUES (1, 'a')", "VALUES (1, 'b'), (2, 'b')", "SELECT 1, 'b' WHERE 1 = 2"):
        assert runs_dynamically(remote, HEAD.format("over.result") + rows)
        expected = rows.count("(")
        assert sum(state(remote, "result")[0].values()) == expected
