"""Small Delta tables that the worker reads without Spark, beside what Spark reads of them."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.job import Stages
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.lakes.delta.indexes import build_index
from tests.spark.test_bound_names import drop_database
from tests.worker.lakes import EVALUATED, ROWS, keys_of
from tests.worker.tasks import Tasks, hand_over, in_worker, values_of, worker_job
from tests.worker.test_left_to_spark import why

CATALOG = "spark.sql.catalog.spark_catalog"
JOIN = "SELECT f.v, f.p FROM small.fact f JOIN {} k ON f.p = k.i AND k.s <> 's6'"


@pytest.fixture(scope="module")
def conf(lake, metastore_service):
    """The settings of the session's catalog, as a task gives them."""
    uri = metastore_service.uri
    return {CATALOG: lake.conf.get(CATALOG), "spark.hadoop.hive.metastore.uris": uri}


@pytest.fixture(scope="module")
def session(lake, metastore_service):
    """A session with a fact table in the metastore."""
    lake.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    lake.sql(f"CREATE DATABASE small LOCATION '{metastore_service.warehouse}/small'")
    lake.sql("CREATE TABLE small.fact (v INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    lake.sql("INSERT INTO small.fact SELECT CAST(id AS INT), CAST(id % 12 AS INT) FROM range(24)")
    yield lake
    drop_database(lake, "small")


NUMBERS = count()


@pytest.fixture
def made(session):
    """Makes a table by statements, each with its name for ``{t}``."""
    name = f"small.t{next(NUMBERS)}"

    def make(*statements):
        for sql in statements:
            session.sql(sql.replace("{t}", name).replace("{ROWS}", ROWS.format(9)))
        return name

    yield make
    session.sql(f"DROP TABLE IF EXISTS {name}")


def same(session, conf, name, columns=EVALUATED):
    """Asserts that both read the same rows; returns them."""
    plain = set(map(tuple, session.sql(f"SELECT {', '.join(columns)} FROM {name}").collect()))
    assert keys_of(conf, name, columns) == plain
    return plain


MADE = {
    "all types": ["CREATE TABLE {t} USING delta AS {ROWS}"],
    "several versions": [
        "CREATE TABLE {t} USING delta AS {ROWS}",
        "INSERT INTO {t} {ROWS}",
        "DELETE FROM {t} WHERE i = 2",
        "UPDATE {t} SET s = 'changed' WHERE i = 3",
    ],
    "partitions": ["CREATE TABLE {t} USING delta PARTITIONED BY (s, d) AS {ROWS}"],
    "all types of partitions": [
        "CREATE TABLE {t} USING delta PARTITIONED BY (i, m, b, l) AS {ROWS}"
    ],
    "an empty text": [
        "CREATE TABLE {t} USING delta PARTITIONED BY (s) AS {ROWS}",
        "UPDATE {t} SET s = '' WHERE i > 2",
    ],
    "more columns": [
        "CREATE TABLE {t} USING delta AS SELECT i, s, d, b, t, f, n FROM ({ROWS})",
        "ALTER TABLE {t} ADD COLUMNS (l BIGINT, m DECIMAL(7,2))",
        "INSERT INTO {t} SELECT i, s, d, b, t, f, n, l, m FROM ({ROWS})",
    ],
    "a checkpoint": [
        "CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.checkpointInterval'='2') AS {ROWS}",
        *["INSERT INTO {t} {ROWS}", "DELETE FROM {t} WHERE i = 2", "INSERT INTO {t} {ROWS}"] * 2,
    ],
    "files rewritten": [
        "CREATE TABLE {t} USING delta AS {ROWS}",
        "INSERT INTO {t} {ROWS}",
        "OPTIMIZE {t}",
    ],
    "an older version again": [
        "CREATE TABLE {t} USING delta AS {ROWS}",
        "DELETE FROM {t} WHERE i > 0",
        "RESTORE TABLE {t} TO VERSION AS OF 0",
    ],
    "deletion vectors that are not used": [
        "CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true') "
        "AS {ROWS}",
    ],
    "no rows": ["CREATE TABLE {t} USING delta AS {ROWS} LIMIT 0"],
    "checkpoints with sidecars": [
        "CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.checkpointPolicy'='v2', "
        "'delta.checkpointInterval'='2') AS {ROWS}",
        *["INSERT INTO {t} {ROWS}"] * 3,
    ],
}


@pytest.mark.parametrize("name", MADE)
def test_the_worker_reads_the_rows_that_spark_reads(session, conf, made, name):
    table = made(*MADE[name])
    rows = same(session, conf, table)
    assert len(rows) > 3 or name == "no rows"
    for column in EVALUATED:
        same(session, conf, table, [column])


LEFT = {
    "deletion vectors": [
        "CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true') "
        "AS {ROWS}",
        "DELETE FROM {t} WHERE i = 2",
    ],
    "columns have other names": [
        "CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.columnMapping.mode'='name') AS {ROWS}",
        "ALTER TABLE {t} RENAME COLUMN d TO e",
        "ALTER TABLE {t} RENAME COLUMN e TO d",
    ],
}


@pytest.mark.parametrize("reason", LEFT)
def test_unsupported_delta_tables_are_left_to_spark(session, conf, made, reason):
    table = made(*LEFT[reason])
    with pytest.raises(Unanswered, match=reason):
        keys_of(conf, table, ["d"])


def test_only_the_newest_checkpoint_and_the_commits_since_are_needed(session, conf, made):
    table = made(*MADE["checkpoints with sidecars"])
    location = session.sql(f"DESCRIBE DETAIL {table}").collect()[0].location
    log = Path(location.removeprefix("file:")) / "_delta_log"
    assert list((log / "_sidecars").iterdir())
    rows = same(session, conf, table)
    (log / f"{1:020}.json").unlink()
    assert same(session, conf, table) == rows


def test_a_delta_log_with_gaps_is_left_to_spark(session, conf, made, metastore_service):
    table = made(*["CREATE TABLE {t} USING delta AS {ROWS}", *["INSERT INTO {t} {ROWS}"] * 2])
    location = session.sql(f"DESCRIBE DETAIL {table}").collect()[0].location
    (Path(location.removeprefix("file:")) / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(Unanswered, match="gaps"):
        keys_of(conf, table, ["d"])


@pytest.fixture
def tasks(session, metastore_service, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", metastore_service.connection)
    return Tasks(session, tmp_path)


def test_the_workers_keys_of_a_delta_table_prune_a_join(tasks, conf, made):
    table = made("CREATE TABLE {t} USING delta PARTITIONED BY (b) AS {ROWS}")
    handed = hand_over(tasks, JOIN.format(table), conf=conf)
    assert (handed.reader, handed.partitions_fetched) == ("worker", 4)
    assert values_of(handed.descriptor) == [("1",), ("2",), ("4",), ("5",)]


def test_the_workers_keys_are_used_if_the_version_is_the_same(tasks, conf, made):
    table = made("CREATE TABLE {t} USING delta AS {ROWS}")
    handed = hand_over(tasks, JOIN.format(table), conf=conf, stages=Stages.BOTH)
    assert handed.reader == "worker"


def test_spark_reads_the_keys_if_a_delta_table_changes_while_it_starts(tasks, conf, made, caplog):
    table = made("CREATE TABLE {t} USING delta AS {ROWS}")
    row = f"CAST(11 AS INT), l, m, 's1', d, b, t, f, n FROM {table} LIMIT 1"
    change = [f"INSERT INTO {table} SELECT {row}"]
    with caplog.at_level("INFO"):
        handed = hand_over(tasks, JOIN.format(table), between=change, conf=conf, stages=Stages.BOTH)
    assert f"{table} changed while Spark started" in caplog.text
    assert handed.reader == "spark"
    assert ("11", "11") in handed.outcome.rows


def test_a_delta_table_is_left_to_spark_if_the_session_has_no_delta(tasks, conf, made):
    table = made("CREATE TABLE {t} USING delta AS {ROWS}")
    settings = {name: text for name, text in conf.items() if name != CATALOG}
    assert "is a table of delta" in why(worker_job(tasks, JOIN.format(table)), conf=settings)


def test_the_workers_key_set_is_of_one_version_of_a_delta_table(session, tasks, conf, made):
    table = made("CREATE TABLE {t} USING delta AS {ROWS}")

    def prune(**options):
        job = worker_job(tasks, JOIN.format(table), **options)
        in_worker(job, **conf)
        return load(UPath(job.path))

    def shared():
        found = prune(key_sets=str(tasks.folder / "keys"))
        assert values_of(found) == values_of(prune())
        (use,) = found.key_sets
        return use

    assert [shared().code, shared().code] == ["ABSENT", "TAKEN"]
    row = f"CAST(11 AS INT), l, m, 's1', d, b, t, f, n FROM {table} LIMIT 1"
    session.sql(f"INSERT INTO {table} SELECT {row}")
    newer = shared()
    assert (newer.code, "the log of " in newer.why) == ("TABLES_CHANGED", True)
    session.sql(f"DROP TABLE {table}")
    made("CREATE TABLE {t} USING delta AS {ROWS}", f"INSERT INTO {{t}} SELECT {row}")
    again = shared()  # another table with as many versions
    assert (again.code, "the log of " in again.why) == ("TABLES_CHANGED", True)


def test_only_a_table_with_a_key_index_leaves_the_statement_to_spark(
    tasks, conf, session, made, tmp_path
):
    table = made("CREATE TABLE {t} USING delta PARTITIONED BY (b) AS {ROWS}")
    root = tmp_path / "indexes"
    options = {"index_path": str(root), "conf": conf}
    assert hand_over(tasks, JOIN.format(table), **options).reader == "worker"
    build_index(session, UPath(root), table, "i")
    job = worker_job(tasks, JOIN.format(table), index_path=str(root))
    assert f"{table} has a key index" in why(job, conf=conf)
