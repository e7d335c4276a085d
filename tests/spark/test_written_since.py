"""Whether a table has been written to since a statement began, for each kind of table."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from packaging.version import Version
from pyspark.errors import PySparkException

from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.spark.application import written_since
from airflow_hive_opt.spark.application.written_since import left_files, why_it_may_have_written
from airflow_hive_opt.spark.session.connect import remote_session

FORMATS = ["USING parquet", "USING orc", "STORED AS PARQUET", "STORED AS TEXTFILE"]
LATER = 3600.0  # seconds


@pytest.fixture(scope="module")
def session(connect_server):
    with remote_session(connect_server.url, {}) as found:
        found.sql("CREATE DATABASE since")
        yield found
        found.sql("DROP DATABASE since CASCADE")


@pytest.fixture(params=FORMATS)
def table(request, session):
    """A table with one row in one of its partitions."""
    session.sql("DROP TABLE IF EXISTS since.r")
    if "USING" in request.param:
        session.sql(f"CREATE TABLE since.r (id INT, p STRING) {request.param} PARTITIONED BY (p)")
    else:
        session.sql(f"CREATE TABLE since.r (id INT) PARTITIONED BY (p STRING) {request.param}")
    session.sql("INSERT INTO since.r PARTITION (p = 'a') SELECT 1")
    return "since.r"


def test_a_table_tells_whether_it_has_been_written_to(session, table):
    insert = f"INSERT INTO {table} SELECT 1, 'b'"
    now = time.time()
    assert why_it_may_have_written(session, insert, now + LATER) is None
    assert "has been written to" in why_it_may_have_written(session, insert, now - LATER)
    overwrite = insert.replace("INTO", "OVERWRITE TABLE")
    assert why_it_may_have_written(session, overwrite, now - LATER) is None


def test_only_the_partition_counts_that_a_statement_names(session, table):
    since = time.time() - LATER
    insert = f"INSERT INTO {table} PARTITION (p = '{{}}') SELECT 2"
    assert why_it_may_have_written(session, insert.format("b"), since) is None
    assert "has been written to" in why_it_may_have_written(session, insert.format("a"), since)


def test_files_count_of_which_the_metastore_knows_no_partition(session, table):
    """A statement may be interrupted between the two."""
    since = time.time() - LATER
    (described,) = (
        session.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'").collect()
    )
    folder = Path(urlsplit(described.data_type).path) / "p=c"
    folder.mkdir()
    (folder / "part-00000").write_text("x")
    insert = f"INSERT INTO {table} PARTITION (p = '{{}}') SELECT 2"
    assert "has been written to" in why_it_may_have_written(session, insert.format("c"), since)
    assert why_it_may_have_written(session, insert.format("b"), since) is None
    assert session.table(table).where("p = 'c'").count() == 0


def test_what_can_not_be_known_may_have_written(session):
    no_table = why_it_may_have_written(session, "INSERT INTO since.no_table SELECT 1", time.time())
    assert "`since`.`no_table` does not tell" in no_table
    assert "TABLE_OR_VIEW_NOT_FOUND" in no_table
    unclear = why_it_may_have_written(session, "FROM VALUES (1) INSERT INTO", time.time())
    assert unclear == "nobody knows which tables it writes"


@pytest.mark.parametrize("verb", ["INTO", "OVERWRITE TABLE"])
def test_files_that_a_killed_job_has_left_are_found(session, table, verb):
    insert = f"INSERT {verb} {table} PARTITION (p = 'a') SELECT 2"
    now = time.time()
    assert left_files(session, insert, now - LATER) is None
    described = session.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    (location,) = [row.data_type for row in described if row.col_name == "Location"]
    task = Path(urlsplit(location).path) / "_temporary" / "0" / "task_1_m_000000" / "p=a"
    task.mkdir(parents=True)
    assert left_files(session, insert, now - LATER) is None
    (task / "part-00000.parquet").write_bytes(b"rows")
    assert left_files(session, insert, now - LATER) == f"{location}/_temporary/0"
    assert left_files(session, insert, now + LATER) is None
    assert left_files(session, insert.replace("'a'", "'b'"), now - LATER) is None
    assert why_it_may_have_written(session, insert.replace("INTO", "OVERWRITE"), 0.0) is None


def test_a_whole_table_that_is_overwritten_takes_no_left_files(session, table):
    assert left_files(session, f"INSERT OVERWRITE {table} SELECT 1, 'a'", 0.0) is None
    assert left_files(session, "INSERT INTO since.missing SELECT 1", 0.0) is None
    assert left_files(session, "INSERT INTO ${name} SELECT 1", 0.0) is None


def test_left_files_are_found_whatever_the_names_of_folder_and_columns(session, tmp_path):
    at = tmp_path / "[a] {b}*"
    session.sql(
        f"CREATE TABLE since.named (id INT, `Day` STRING, `my:p` STRING) USING parquet "
        f"PARTITIONED BY (`Day`, `my:p`) LOCATION '{at}'"
    )
    insert = "INSERT OVERWRITE since.named PARTITION (day = 'A', `my:p` = 'b') SELECT 1"
    session.sql(insert)
    task = at / "_temporary" / "0" / "task_1_m_000000" / "day=A" / "my%3Ap=b"
    task.mkdir(parents=True)
    (task / "part-00000.parquet").write_bytes(b"rows")
    try:
        assert left_files(session, insert, 0.0).endswith("/_temporary/0")
        assert left_files(session, insert.replace("'A'", "'C'"), 0.0) is None
        added = insert.replace("OVERWRITE", "INTO")
        assert "has been written to" in why_it_may_have_written(session, added, 0.0)
    finally:
        session.sql("DROP TABLE since.named")


def test_an_error_of_the_storage_is_no_answer(session, table, monkeypatch):
    far = {"Location": "nowhere://b/far", "Provider": "parquet"}
    monkeypatch.setattr(written_since, "_described", lambda *_: far)
    with pytest.raises(PySparkException, match="nowhere"):
        left_files(session, f"INSERT INTO {table} SELECT 1", 0.0)
    monkeypatch.setattr(written_since, "_described", lambda *_: {**far, "Provider": "iceberg"})
    assert left_files(session, f"INSERT INTO {table} SELECT 1", 0.0) is None
