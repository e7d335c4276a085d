"""Jobs that write partitions of one table at the same time use separate folders."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyarrow import parquet
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.map_join import partition_folder
from airflow_hive_opt.spark.map_join.command import Command
from airflow_hive_opt.spark.map_join.partition_folder import PartitionFolder
from airflow_hive_opt.spark.session.physical_operators import operators
from airflow_hive_opt.spark.session.spark_compat import frame_of
from tests.cases import slow_but
from tests.spark.stages import job_of, join, prune
from tests.spark.twin_tables import make_twins
from tests.versions.installed import needs_spark

ROWS = "SELECT sum(s.amount){} FROM staged.sales s JOIN staged.days d ON s.d = d.d"
FORMATS = ("STORED AS PARQUET", "STORED AS ORC", "USING parquet")


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS staged")
    spark.sql("CREATE TABLE staged.days STORED AS PARQUET AS SELECT 1 AS d, 10 AS amount")
    spark.sql("CREATE TABLE staged.sales (amount INT) PARTITIONED BY (d INT) STORED AS PARQUET")
    spark.sql("INSERT INTO staged.sales VALUES (5, 1), (6, 1), (7, 2)")
    yield
    spark.sql("DROP DATABASE staged CASCADE")


@pytest.fixture
def make(spark):
    """A fresh table of two partition columns, and a plain twin of it."""

    def made(how: str = FORMATS[0]) -> Path:
        return make_twins(spark, "staged", "amount BIGINT", how)

    return made


def run(spark, tmp_path, sql: str, **conf: str) -> None:
    session = spark.newSession()
    for name, value in conf.items():
        session.conf.set(name.replace("__", "."), value)
    job, path = job_of(sql), UPath(tmp_path) / "1.json"
    join(session, job, prune(session, job, path), path)


def contents(spark, table: str) -> tuple:
    spark.sql(f"REFRESH TABLE {table}")
    partitions = [row[0] for row in spark.sql(f"SHOW PARTITIONS {table}").collect()]
    return sorted(map(tuple, spark.table(table).collect()), key=repr), partitions


def alike(spark, tmp_path, sql: str) -> tuple:
    """The contents after our run, which are those after Spark's own."""
    run(spark, tmp_path, sql.format("staged.result"))
    spark.newSession().sql(sql.format("staged.plain"))
    ours, plain = contents(spark, "staged.result"), contents(spark, "staged.plain")
    assert ours == plain
    return ours


@pytest.mark.parametrize(
    ("partition", "values"),
    [("ds = 'a', n = 1", ""), ("ds = 'a', n", ", 1"), ("ds, n", ", 'a', 1")],
)
@pytest.mark.parametrize("how", slow_but(FORMATS, FORMATS[0]))
def test_an_overwrite_does_not_touch_the_files_of_another_job(
    spark, tmp_path, make, how, partition, values
):
    if how.startswith("USING") and values:
        pytest.skip("Spark shares the folder unless partitionOverwriteMode is dynamic")
    folder = make(how)
    others = folder / "_temporary" / "0" / "t" / "part-0"
    others.parent.mkdir(parents=True)
    others.write_text("its rows")
    sql = f"INSERT OVERWRITE TABLE staged.result PARTITION ({partition}) {ROWS.format(values)}"
    for _ in range(2):  # overwritten, not added to
        run(spark, tmp_path, sql)
        assert contents(spark, "staged.result")[0] == [(11, "a", 1)]
    assert others.read_text() == "its rows"
    assert not list(folder.glob(".hive-opt-*"))


@pytest.mark.parametrize("how", slow_but(FORMATS, FORMATS[0]))
@pytest.mark.parametrize("value", slow_but(["1", "'01'", "null", "-1"], "'01'", "null"))
def test_the_partition_is_named_as_spark_names_it(spark, tmp_path, make, how, value):
    make(how)
    sql = f"INSERT OVERWRITE {{}} PARTITION (ds = 'A b/c=%', n = {value}) {ROWS.format('')}"
    rows, partitions = alike(spark, tmp_path, sql)
    assert len(rows) == len(partitions) == 1


@pytest.mark.parametrize("how", slow_but(FORMATS, FORMATS[0]))
def test_an_overwrite_without_rows_empties_the_partition(spark, tmp_path, make, how):
    make(how)
    sql = f"INSERT OVERWRITE {{}} PARTITION (ds = 'a', n = 1) {ROWS.format('')}"
    assert alike(spark, tmp_path, sql)[0] == [(11, "a", 1)]
    rows, _ = alike(spark, tmp_path, f"{sql} WHERE s.amount > 100 GROUP BY s.d")
    assert rows == []


def at_once(*works) -> list[str]:
    """What went wrong in any of the works, which all run at once."""
    wrong: list[str] = []

    def tried(work) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - it is what the test looks at
            wrong.append(str(error))

    threads = [threading.Thread(target=tried, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


@pytest.mark.parametrize("condition", slow_but(["1 = 1", "s.amount > 100"], "1 = 1"))
def test_concurrent_overwrites_of_different_days_do_not_disturb_each_other(
    spark, tmp_path, make, condition
):
    """With rows and without; each is what it is alone."""
    make()
    days = range(4)
    for day in days:
        spark.sql(f"INSERT INTO staged.result PARTITION (ds = 'a', n = {day}) VALUES (1)")
    query = "SELECT s.amount FROM staged.sales s JOIN staged.days d ON s.d = d.d AND " + condition

    def overwriting(day: int):
        sql = f"INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = {day}) {query}"
        return lambda: [run(spark, tmp_path / f"{day}-{turn}", sql) for turn in range(2)]

    assert at_once(*map(overwriting, days)) == []
    rows = [] if "100" in condition else [(amount, "a", day) for amount in (5, 6) for day in days]
    found, partitions = contents(spark, "staged.result")
    assert found == sorted(rows, key=repr)
    assert len(partitions) == 4


def test_concurrent_overwrites_of_one_partition_leave_the_rows_of_one_run(spark, tmp_path, make):
    folder = make()
    texts = [
        "INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) SELECT s.amount + "
        f"{number} FROM staged.sales s JOIN staged.days d ON s.d = d.d"
        for number in range(4)
    ]

    def overwriting(number: int):
        return lambda: [
            run(spark, tmp_path / f"{number}-{turn}", texts[number]) for turn in range(2)
        ]

    assert at_once(*map(overwriting, range(4))) == []
    rows = [row[0] for row in contents(spark, "staged.result")[0]]
    assert rows in [[5 + number, 6 + number] for number in range(4)]
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["ds=a"]
    assert not [path for path in (folder / "ds=a" / "n=1").iterdir() if path.is_dir()]


def test_metastore_calls_of_an_overwrite_do_not_grow_with_the_table(spark, tmp_path):
    """Spark's dynamic overwrite of a table with one partition column fetches every partition."""
    spark.sql("CREATE TABLE staged.big (amount BIGINT) PARTITIONED BY (n INT) STORED AS PARQUET")
    parts = " ".join(f"PARTITION (n = {number})" for number in range(200))
    spark.sql(f"ALTER TABLE staged.big ADD {parts}")
    catalog = SparkCatalog(spark)
    sql = "INSERT OVERWRITE staged.big PARTITION (n = 7) SELECT 1"
    before = catalog.work()
    command = Command(spark.newSession(), sql, {})
    assert command.overwrites_one_partition()
    assert command.overwrite()
    assert (catalog.work() - before).partitions_fetched <= 4
    assert spark.table("staged.big").collect() == [(1, 7)]
    spark.sql("DROP TABLE staged.big")


def test_an_overwrite_has_the_physical_plan_of_plain_spark(spark, make, monkeypatch):
    """Spark's dynamic overwrite sorts by the partition where it can't see that there is one."""
    folder = make()
    plans = []

    def kept(session, execution):
        plans.extend(kind for kind, _ in operators(execution.executedPlan()))
        return frame_of(session, execution)

    monkeypatch.setattr("airflow_hive_opt.spark.map_join.command.frame_of", kept)
    sql = (
        "INSERT OVERWRITE staged.{} PARTITION (ds = 'a', n = 1) "
        "SELECT (id * 7919) % 1000 FROM range(0, 1000, 1, 1) UNION ALL SELECT -1"
    )
    assert Command(spark.newSession(), sql.format("result"), {}).overwrite()
    spark.newSession().sql(sql.format("plain"))
    assert "UnionExec" in plans
    assert "SortExec" not in plans
    ours, plain = (
        [parquet.read_table(file)["amount"].to_pylist() for file in sorted(place.glob("part-*"))]
        for place in (folder / "ds=a" / "n=1", folder.with_name("plain") / "ds=a" / "n=1")
    )
    assert ours == plain


def test_a_move_that_fails_leaves_the_old_rows(spark, make, monkeypatch):
    folder = make()
    spark.sql("INSERT INTO staged.result PARTITION (ds = 'a', n = 1) VALUES (1)")
    move = PartitionFolder._move

    def failing(self, source, target):
        if "staging" in source.toString():
            source = self._path(self.staging, "nowhere")
        move(self, source, target)

    monkeypatch.setattr(PartitionFolder, "_move", failing)
    sql = "INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) SELECT 2"
    with pytest.raises(Py4JJavaError):
        Command(spark.newSession(), sql, {}).overwrite()
    assert contents(spark, "staged.result")[0] == [(1, "a", 1)]
    assert not list(folder.glob(".hive-opt-*"))


def test_the_pause_doubles_each_time_another_run_moves_its_files_first(spark, make, monkeypatch):
    folder = make()
    others, pauses = iter(range(6)), []
    move = PartitionFolder._move

    def contended(self, source, target):
        if "staging" in source.toString() and next(others, None) is not None:
            (folder / "ds=a" / "n=1").mkdir(parents=True, exist_ok=True)
        move(self, source, target)

    monkeypatch.setattr(PartitionFolder, "_move", contended)
    monkeypatch.setattr(partition_folder, "uniform", lambda low, high: high)
    monkeypatch.setattr(partition_folder, "sleep", pauses.append)
    assert Command(spark.newSession(), OVERWRITE.format(2), {}).overwrite()
    assert contents(spark, "staged.result")[0] == [(2, "a", 1)]
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]
    assert not list(folder.glob(".hive-opt-*"))


class ObjectStore:
    """A stand-in for the file system of an object store, which may refuse to move a folder."""

    def __init__(self, files, refusal) -> None:
        self._files = files
        self._refusal = refusal

    def __getattr__(self, name):
        return getattr(self._files, name)

    def rename(self, source, target):
        return self._files.rename(source, target) if self._refusal is None else self._refusal()


@pytest.fixture
def object_store(monkeypatch):
    def install(refusal=None) -> None:
        made = PartitionFolder.__init__

        def with_store(self, *arguments):
            made(self, *arguments)
            self._files = ObjectStore(self._files, refusal)

        monkeypatch.setattr(partition_folder, "_MOVES", frozenset())
        monkeypatch.setattr(PartitionFolder, "__init__", with_store)

    return install


OVERWRITE = "INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) SELECT {}"


def test_an_overwrite_on_an_object_store_has_the_new_rows(spark, make, object_store):
    folder = make()
    object_store()
    for value in (1, 2):
        assert Command(spark.newSession(), OVERWRITE.format(value), {}).overwrite()
        assert contents(spark, "staged.result")[0] == [(value, "a", 1)]
    assert not list(folder.glob(".hive-opt-*"))


def test_an_object_store_that_refuses_the_move_keeps_the_new_rows(spark, make, object_store):
    folder = make()
    spark.sql(OVERWRITE.format(1))
    object_store(refusal=lambda: False)
    with pytest.raises(PySparkException, match="ds=a/n=1 is incomplete") as error:
        Command(spark.newSession(), OVERWRITE.format(2), {}).overwrite()
    (kept,) = folder.glob(".hive-opt-staging-*/ds=a/n=1")
    assert str(kept) in str(error.value)
    assert parquet.read_table(kept)["amount"].to_pylist() == [2]


def test_an_overwrite_of_one_partition_keeps_the_others(spark, tmp_path, make):
    make()
    for name in ("result", "plain"):
        spark.sql(f"INSERT INTO staged.{name} VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1)")
    sql = f"INSERT OVERWRITE {{}} PARTITION (ds = 'a', n = 1) {ROWS.format('')}"
    assert alike(spark, tmp_path, sql)[0] == [(11, "a", 1), (2, "a", 2), (3, "b", 1)]


def test_an_overwrite_keeps_the_location_of_its_partition(spark, tmp_path, make):
    make()
    for name in ("result", "plain"):
        place = tmp_path / name
        spark.sql(f"ALTER TABLE staged.{name} ADD PARTITION (ds='a', n=1) LOCATION '{place}'")
        spark.sql(f"INSERT INTO staged.{name} PARTITION (ds = 'a', n = 1) VALUES (1)")
    sql = f"INSERT OVERWRITE {{}} PARTITION (ds = 'a', n = 1) {ROWS.format('')}"
    assert alike(spark, tmp_path, sql)[0] == [(11, "a", 1)]
    assert list((tmp_path / "result").glob("*.parquet"))


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        ("STRING", "CAST(X'FF41' AS STRING)", "FF41"),
        # before Spark 4.0 dates of another calendar are written where a setting allows them
        pytest.param("DATE", "DATE'0001-01-01'", "303030312D30312D3031", marks=needs_spark("4.0")),
    ],
)
def test_an_overwrite_writes_the_values_that_plain_spark_writes(
    spark, tmp_path, how, type_, value, shown
):
    """Hive's writer makes other bytes of a string that is no UTF-8, and other ancient days."""
    for name in ("odd", "odd_plain"):
        columns, how_and_by = f"v {type_}", f"PARTITIONED BY (ds STRING) {how}"
        if how.startswith("USING"):
            columns, how_and_by = f"v {type_}, ds STRING", f"{how} PARTITIONED BY (ds)"
        spark.sql(f"CREATE TABLE staged.{name} ({columns}) {how_and_by}")
    sql = f"INSERT OVERWRITE {{}} PARTITION (ds = 'a') SELECT {value} FROM staged.days"
    run(spark, tmp_path, sql.format("staged.odd"))
    spark.sql(sql.format("staged.odd_plain"))
    for name in ("odd", "odd_plain"):
        assert spark.sql(f"SELECT hex(string(v)) FROM staged.{name}").collect() == [(shown,)]
        spark.sql(f"DROP TABLE staged.{name}")


@pytest.mark.parametrize(
    ("sql", "own"),
    [
        ("INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) SELECT 1", True),
        ("INSERT OVERWRITE staged.result PARTITION (ds = 'a', n) SELECT 1, 1", False),
        ("INSERT INTO staged.result PARTITION (ds = 'a', n = 1) SELECT 1", False),
        (
            "INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) IF NOT EXISTS SELECT 1",
            False,
        ),
        ("INSERT OVERWRITE staged.whole SELECT 1", False),
        ("CREATE TABLE staged.made AS SELECT 1 AS a", False),
    ],
)
def test_only_some_statements_overwrite_one_partition(spark, make, sql, own):
    make()
    spark.sql("CREATE TABLE IF NOT EXISTS staged.whole (amount INT) USING parquet")
    assert Command(spark.newSession(), sql, {}).overwrites_one_partition() is own
    assert not spark.catalog.tableExists("staged.made")


def test_a_session_with_its_own_committer_uses_it(spark, make):
    make()
    session = spark.newSession()
    sql = "INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) SELECT 1"
    session.conf.set(
        "spark.sql.parquet.output.committer.class",
        "org.apache.parquet.hadoop.ParquetOutputCommitter",
    )
    assert not Command(session, sql, {}).overwrites_one_partition()


OLD = [(1, "a", 1), (2, "b", 1)]


@pytest.mark.parametrize(
    ("layout", "target", "others", "by_us", "by_spark"),
    [
        ("PARTITIONED BY (ds, n)", "PARTITION (ds = 'a', n = 1)", "", OLD, OLD[1:]),
        ("PARTITIONED BY (ds, n)", "PARTITION (ds = 'a', n)", ", 1", OLD[1:], OLD[1:]),
        ("PARTITIONED BY (ds, n)", "", ", 'a', 1", [], []),
        ("", "", ", 'a', 1", [], []),
    ],
    ids=["one partition", "some partitions", "all partitions", "no partitions"],
)
def test_a_failed_overwrite_of_one_partition_leaves_the_old_rows(
    spark, tmp_path, layout, target, others, by_us, by_spark
):
    """Spark deletes the old rows first; only one partition goes through a staging folder."""
    sql = (
        "INSERT OVERWRITE staged.{} "
        f"{target} SELECT IF(s.amount < 6, 9L, CAST(raise_error('stopped') AS BIGINT)){others} "
        "FROM staged.sales s JOIN staged.days d ON s.d = d.d"
    )
    found = []
    for name, overwrite in (
        ("result", lambda text: run(spark, tmp_path, text)),
        ("plain", lambda text: spark.newSession().sql(text)),
    ):
        spark.sql(f"DROP TABLE IF EXISTS staged.{name}")
        columns = "(amount BIGINT, ds STRING, n INT)"
        spark.sql(f"CREATE TABLE staged.{name} {columns} USING parquet {layout}")
        spark.sql(f"INSERT INTO staged.{name} VALUES (1, 'a', 1), (2, 'b', 1)")
        with pytest.raises((PySparkException, Py4JJavaError), match="stopped"):
            overwrite(sql.format(name))
        spark.sql(f"REFRESH TABLE staged.{name}")
        found.append(sorted(map(tuple, spark.table(f"staged.{name}").collect())))
    assert found == [by_us, by_spark]


def test_a_table_that_is_read_is_not_overwritten(spark, tmp_path, make):
    make()
    run(
        spark,
        tmp_path,
        f"INSERT INTO staged.result {ROWS.format(', `a`, 1').replace('`', chr(39))}",
    )
    before = contents(spark, "staged.result")
    sql = (
        "INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) "
        "SELECT r.amount FROM staged.result r JOIN staged.days d ON r.n = d.d"
    )
    with pytest.raises(Exception, match="UNSUPPORTED_OVERWRITE"):
        run(spark, tmp_path, sql)
    assert contents(spark, "staged.result") == before


def test_a_cached_table_is_read_again_after_an_overwrite(spark, make):
    make()
    spark.sql("INSERT INTO staged.result PARTITION (ds = 'a', n = 1) VALUES (1)")
    spark.sql("CACHE TABLE staged.result")
    assert spark.table("staged.result").collect() == [(1, "a", 1)]
    sql = "INSERT OVERWRITE staged.result PARTITION (ds = 'a', n = 1) SELECT 2"
    assert Command(spark.newSession(), sql, {}).overwrite()
    assert spark.table("staged.result").collect() == [(2, "a", 1)]
    spark.sql("UNCACHE TABLE staged.result")
