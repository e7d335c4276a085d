"""Small Iceberg tables that the worker reads without Spark, beside what Spark reads of them."""

from __future__ import annotations

from itertools import count

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import Stages
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.lakes.iceberg.indexes import build_index
from tests.spark.test_bound_names import drop_database
from tests.worker.lakes import EVALUATED, ROWS, keys_of
from tests.worker.tasks import Tasks, hand_over, values_of, worker_job
from tests.worker.test_left_to_spark import why


@pytest.fixture(scope="module")
def conf(lake, metastore_service):
    """The settings of the session's catalogs, as a task gives them."""
    found = {name: lake.conf.get(name) for name in _catalogs(lake)}
    return {**found, "spark.hadoop.hive.metastore.uris": metastore_service.uri}


def _catalogs(lake):
    names = ("lake", "lake.type", "lake.warehouse", "hms", "hms.type", "hms.uri")
    return [f"spark.sql.catalog.{name}" for name in names]


@pytest.fixture(scope="module")
def session(lake, metastore_service):
    """A session whose own catalog reads Iceberg tables too, with a fact table in the metastore."""
    lake = lake.newSession()
    lake.conf.set("spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog")
    lake.conf.set("spark.sql.catalog.spark_catalog.type", "hive")
    lake.sql(f"CREATE DATABASE small LOCATION '{metastore_service.warehouse}/small'")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.small")  # another file of tests makes it too
    lake.sql("CREATE TABLE small.fact (v INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    lake.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    lake.sql("INSERT INTO small.fact SELECT CAST(id AS INT), CAST(id % 12 AS INT) FROM range(24)")
    yield lake
    for name in ("keys", "other"):
        lake.sql(f"DROP TABLE IF EXISTS small.{name}")
    drop_database(lake, "small")


@pytest.fixture
def made(session):
    """Makes ``lake.small.t`` by statements, each with the table's name for ``{t}``."""

    def make(*statements):
        for sql in statements:
            session.sql(sql.replace("{t}", "lake.small.t").replace("{ROWS}", ROWS))
        return "lake.small.t"

    yield make
    session.sql("DROP TABLE IF EXISTS lake.small.t PURGE")


def same(session, conf, name, columns=EVALUATED):
    """Asserts that both read the same rows; returns them."""
    session.sql(f"REFRESH TABLE {name}")
    plain = set(map(tuple, session.sql(f"SELECT {', '.join(columns)} FROM {name}").collect()))
    assert keys_of(conf, name, columns) == plain
    return plain


MADE = {
    "all types": ["CREATE TABLE {t} USING iceberg AS {ROWS}"],
    "several files": ["CREATE TABLE {t} USING iceberg AS {ROWS}", "INSERT INTO {t} {ROWS}"],
    "partitions": ["CREATE TABLE {t} USING iceberg PARTITIONED BY (s, d) AS {ROWS}"],
    "all kinds of partitions": [
        "CREATE TABLE {t} USING iceberg PARTITIONED BY (m, b, bucket(3, i), truncate(2, s), "
        "months(d), l) AS {ROWS}"
    ],
    "other partitions later": [
        "CREATE TABLE {t} USING iceberg PARTITIONED BY (s) AS {ROWS}",
        "ALTER TABLE {t} REPLACE PARTITION FIELD s WITH bucket(2, i)",
        "INSERT INTO {t} {ROWS}",
        "ALTER TABLE {t} ADD PARTITION FIELD d",
        "INSERT INTO {t} {ROWS}",
    ],
    "orc": [
        "CREATE TABLE {t} USING iceberg TBLPROPERTIES ('write.format.default'='orc') AS {ROWS}"
    ],
    "a newer schema": [
        "CREATE TABLE {t} USING iceberg AS SELECT i, s, d, b, t, f, n FROM ({ROWS})",
        "ALTER TABLE {t} ADD COLUMNS (l INT, m DECIMAL(5,2))",
        "INSERT INTO {t} SELECT i, s, d, b, t, f, n, i, m FROM ({ROWS})",
        "ALTER TABLE {t} ALTER COLUMN l TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN m TYPE DECIMAL(7,2)",
        "ALTER TABLE {t} RENAME COLUMN s TO old",
        "ALTER TABLE {t} ADD COLUMN s STRING FIRST",
        "INSERT INTO {t} SELECT concat('n', i), i, s, d, b, t, f, n, l, m FROM ({ROWS})",
        "ALTER TABLE {t} DROP COLUMN b",
        "ALTER TABLE {t} ADD COLUMN b BOOLEAN AFTER i",
    ],
    "rows deleted by position": [
        "CREATE TABLE {t} USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read', "
        "'write.update.mode'='merge-on-read') AS {ROWS}",
        "DELETE FROM {t} WHERE i = 2",
        "UPDATE {t} SET s = 'changed' WHERE i = 3",
        "INSERT INTO {t} {ROWS}",
        "DELETE FROM {t} WHERE l = 10000000000 AND i > -5",
    ],
    "deletion vectors": [
        "CREATE TABLE {t} USING iceberg TBLPROPERTIES ('format-version'='3', "
        "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read') AS {ROWS}",
        "DELETE FROM {t} WHERE i = 2",
        "INSERT INTO {t} {ROWS}",
        "DELETE FROM {t} WHERE i = 4",
    ],
    "files rewritten": [
        "CREATE TABLE {t} USING iceberg AS {ROWS}",
        "DELETE FROM {t} WHERE i = 2",
        "CALL lake.system.rewrite_data_files(table => 'small.t')",
    ],
    "an older snapshot again": [
        "CREATE TABLE {t} USING iceberg AS {ROWS}",
        "DELETE FROM {t} WHERE i > 0",
        "CALL lake.system.set_current_snapshot(table => 'small.t', snapshot_id => {first})",
    ],
    "a branch beside it": [
        "CREATE TABLE {t} USING iceberg AS {ROWS}",
        "ALTER TABLE {t} CREATE BRANCH b",
        "INSERT INTO {t}.branch_b {ROWS}",
        "DELETE FROM {t}.branch_b WHERE i < 3",
    ],
    "compressed metadata": [
        "CREATE TABLE {t} USING iceberg TBLPROPERTIES "
        "('write.metadata.compression-codec'='gzip') AS {ROWS}"
    ],
}


@pytest.mark.parametrize("name", MADE)
def test_the_worker_reads_the_rows_that_spark_reads(session, conf, made, name):
    for text in MADE[name]:
        sql = text.replace("{ROWS}", ROWS.format(9))
        if "{first}" in sql:
            history = session.sql("SELECT snapshot_id FROM lake.small.t.history").collect()
            sql = sql.replace("{first}", str(history[0][0]))
        table = made(sql)
    rows = same(session, conf, table)
    assert len(rows) > 3
    for column in EVALUATED:
        same(session, conf, table, [column])


def test_the_worker_finds_columns_in_another_case(session, conf, made):
    table = made("CREATE TABLE {t} (Id INT, NAME STRING) USING iceberg")
    session.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    assert same(session, conf, table, ["id", "name"]) == {(1, "a"), (2, "b")}


def test_hive_files_added_to_an_iceberg_table(session, conf, made):
    """The files name no column by its number, and have no values of the partition."""
    session.sql(
        "CREATE TABLE small.other (v INT, s STRING) PARTITIONED BY (p INT) STORED AS PARQUET"
    )
    session.sql("INSERT INTO small.other VALUES (1, 'a', 3), (2, 'b', 4)")
    table = made("CREATE TABLE {t} (v INT, s STRING, p INT) USING iceberg PARTITIONED BY (p)")
    session.sql("CALL lake.system.add_files(table => 'small.t', source_table => 'small.other')")
    session.sql(f"ALTER TABLE {table} RENAME COLUMN s TO z")
    assert same(session, conf, table, ["v", "z", "p"]) == {(1, "a", 3), (2, "b", 4)}


LEFT = {
    "avro": "CREATE TABLE {t} USING iceberg TBLPROPERTIES ('write.format.default'='avro') "
    "AS {ROWS}",
    "has no snapshot": "CREATE TABLE {t} (d DATE) USING iceberg",
    "out of range": "CREATE TABLE {t} USING iceberg AS SELECT DATE'1500-01-01' AS d",
}


@pytest.mark.parametrize("reason", LEFT)
def test_unsupported_iceberg_tables_are_left_to_spark(session, conf, made, reason):
    table = made(LEFT[reason].replace("{ROWS}", ROWS.format(3)))
    with pytest.raises(Unanswered, match=f"(?i){reason}"):
        keys_of(conf, table, ["d"])


@pytest.fixture
def tasks(session, metastore_service, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", metastore_service.connection)
    return Tasks(session, tmp_path)


NUMBERS = count()
SESSION = {
    "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
    "spark.sql.catalog.spark_catalog.type": "hive",
}
JOIN = "SELECT f.v, f.p FROM small.fact f JOIN {} k ON f.p = k.i AND k.s <> 's6'"


@pytest.fixture(params=["lake.small", "hms.small", "small"])
def small(request, session):
    """A table by its name in each kind of catalog; Spark keeps tables of a name for a while."""
    short = f"keys{next(NUMBERS)}"
    owner = request.param if request.param.startswith("lake") else "hms.small"
    session.sql(f"CREATE TABLE {owner}.{short} USING iceberg AS {ROWS.format(9)}")
    yield f"{request.param}.{short}"
    session.sql(f"DROP TABLE {owner}.{short} PURGE")


def test_the_workers_keys_of_an_iceberg_table_prune_a_join(tasks, conf, small):
    handed = hand_over(tasks, JOIN.format(small), conf={**conf, **SESSION})
    assert (handed.reader, handed.partitions_fetched) == ("worker", 4)
    assert values_of(handed.descriptor) == [("1",), ("2",), ("4",), ("5",)]
    (snapshot,) = handed.descriptor.snapshots
    assert snapshot.table in (small, f"spark_catalog.{small}")


def test_spark_reads_the_keys_if_an_iceberg_table_changes_while_it_starts(
    tasks, conf, small, caplog
):
    row = f"CAST(11 AS INT), l, m, 's1', d, b, t, f, n FROM {small} LIMIT 1"
    change = f"INSERT INTO {small} SELECT {row}"
    with caplog.at_level("INFO"):
        handed = hand_over(
            tasks,
            JOIN.format(small),
            between=[change],
            conf={**conf, **SESSION},
            stages=Stages.BOTH,
        )
    assert "changed while Spark started" in caplog.text
    assert handed.reader == "spark"
    assert ("11", "11") in handed.outcome.rows


def test_spark_reads_the_keys_if_its_table_of_that_name_lies_elsewhere(
    tasks, conf, session, tmp_path, caplog
):
    """Its files lie elsewhere."""
    made = "CREATE TABLE hms.small.moved USING iceberg {} AS " + ROWS.format(9)
    session.sql(made.format(""))
    between = [
        "DROP TABLE hms.small.moved PURGE",
        made.format(f"LOCATION 'file:{tmp_path}/else'"),
    ]
    try:
        handed = hand_over(tasks, JOIN.format("hms.small.moved"), between=between, conf=conf)
        assert handed.reader == "spark"
        assert "hms.small.moved lies in" in caplog.text
    finally:
        session.sql("DROP TABLE hms.small.moved PURGE")


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("spark.wap.branch", "b", "spark.wap.branch is set"),
        ("spark.sql.catalog.lake", "org.example.Other", "only Spark can read"),
        ("spark.sql.catalog.lake.type", "jdbc", "only Spark can read"),
        ("spark.sql.catalog.lake.catalog-impl", "org.example.Other", "only Spark can read"),
        ("spark.sql.catalog.lake.table-override.x", "y", "only Spark can read"),
        ("spark.sql.catalog.spark_catalog.uri", "thrift://nowhere:1", "Spark may read other"),
    ],
)
def test_some_settings_leave_iceberg_tables_to_spark(tasks, conf, made, setting, value, reason):
    made(f"CREATE TABLE {{t}} USING iceberg AS {ROWS.format(2)}")
    job = worker_job(tasks, JOIN.format("lake.small.t"))
    assert reason in why(job, conf={**conf, setting: value})


def test_an_iceberg_table_is_left_to_spark_if_the_session_has_no_iceberg(tasks, conf, session):
    session.sql(f"CREATE TABLE hms.small.keys USING iceberg AS {ROWS.format(2)}")
    try:
        job = worker_job(tasks, JOIN.format("small.keys"))
        assert "is a table of iceberg" in why(job, conf=conf)
    finally:
        session.sql("DROP TABLE hms.small.keys PURGE")


def test_missing_tables_metadata_tables_and_versions_are_left_to_spark(tasks, conf, made):
    table = made(f"CREATE TABLE {{t}} USING iceberg AS {ROWS.format(2)}")
    for name in ("lake.small.none", f"{table}.snapshots", f"{table}.branch_b"):
        assert "no version of" in why(worker_job(tasks, JOIN.format(name)), conf=conf)
    versioned = worker_job(tasks, JOIN.format(f"{table} VERSION AS OF 1"))
    assert "a version of" in why(versioned, conf=conf)


def test_a_big_iceberg_table_is_left_to_spark(tasks, conf, made):
    made(f"CREATE TABLE {{t}} USING iceberg PARTITIONED BY (i) AS {ROWS.format(2)}")
    sql = "SELECT k.s FROM lake.small.t k JOIN small.fact f ON f.p = k.i AND f.v < 3"
    assert "is a table of iceberg" in why(worker_job(tasks, sql), conf=conf)


def test_only_a_table_with_a_key_index_leaves_the_statement_to_spark(
    tasks, conf, session, made, tmp_path
):
    table = made(f"CREATE TABLE {{t}} USING iceberg PARTITIONED BY (b) AS {ROWS.format(9)}")
    options = {"index_path": str(tmp_path / "indexes"), "conf": {**conf, **SESSION}}
    assert hand_over(tasks, JOIN.format(table), **options).reader == "worker"
    session.sql(f"CREATE TABLE lake.small.other USING iceberg AS {ROWS.format(2)}")
    build_index(session, UPath(tmp_path / "indexes"), "lake.small.other", "i")
    session.sql("DROP TABLE lake.small.other PURGE")
    assert hand_over(tasks, JOIN.format(table), **options).reader == "worker"
    build_index(session, UPath(tmp_path / "indexes"), table, "i")
    job = worker_job(tasks, JOIN.format(table), index_path=options["index_path"])
    assert "lake.small.t has a key index" in why(job, conf=conf)


def test_a_task_that_holds_snapshots_is_left_to_spark(tasks, conf, made):
    made(f"CREATE TABLE {{t}} USING iceberg AS {ROWS.format(2)}")
    job = worker_job(tasks, JOIN.format("lake.small.t"), hold_snapshots=True)
    assert "reads tables at their snapshots" in why(job, conf=conf)
