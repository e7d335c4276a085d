"""A full or read-only disk: one clear message, and partitions that hold what they held, or all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from tests.services.disk import fill, small_disk

pytestmark = pytest.mark.faults
QUERY = "SELECT f.id FROM disks.fact f JOIN disks.keys k ON f.p = k.p"


def read_only(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS disks")
    spark.sql("CREATE TABLE disks.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    spark.sql("INSERT INTO disks.fact SELECT CAST(id AS INT), CAST(id % 6 AS INT) FROM range(30)")
    spark.sql("CREATE TABLE disks.keys USING parquet AS SELECT 1 AS p")
    yield
    spark.sql("DROP DATABASE disks CASCADE")


@pytest.fixture
def result(spark):
    spark.sql("DROP TABLE IF EXISTS disks.result")
    spark.sql("CREATE TABLE disks.result (id INT) PARTITIONED BY (d INT) STORED AS PARQUET")
    spark.sql("INSERT INTO disks.result VALUES (100, 1)")

    def rows() -> list[tuple]:
        spark.sql("REFRESH TABLE disks.result")
        return sorted(map(tuple, spark.table("disks.result").collect()))

    return rows


INSERTS = (
    "INSERT INTO disks.result PARTITION (d = 1) ",
    "INSERT OVERWRITE disks.result PARTITION (d = 1) ",
)


@pytest.mark.parametrize("how", ["full", "read-only"])
@pytest.mark.parametrize("insert", INSERTS, ids=["into", "overwrite"])
def test_a_full_or_read_only_disk_for_the_descriptor_changes_no_table(
    spark, tmp_path, result, how, insert
):
    with small_disk(tmp_path / "disk", kilobytes=64, in_use=True) as folder:
        good = run_job(spark, Job(QUERY, str(folder / "0.json"), Stages.LOCAL_TASK))
        kept = (folder / "0.json").read_bytes()
        fill(folder) if how == "full" else read_only(folder)
        for name in ("1.json", "0.json"):  # a new file, and one that is there
            failed = run_job(spark, Job(insert + QUERY, str(folder / name), Stages.BOTH))
            assert failed.status is Status.FAILED
            assert "can't write" in failed.message
            assert "\n" not in failed.message
        assert (folder / "0.json").read_bytes() == kept
        assert load(UPath(folder / "0.json")).digest == good.summary["digest"]
    assert result() == [(100, 1)]


@pytest.mark.parametrize("insert", INSERTS, ids=["into", "overwrite"])
def test_a_report_that_can_not_be_written_does_not_fail_the_run(
    spark, tmp_path, result, insert, caplog
):
    (tmp_path / "1.report.json").mkdir()
    done = run_job(spark, Job(insert + QUERY, str(tmp_path / "1.json"), Stages.BOTH))
    assert done.status is Status.DONE
    assert "report" in caplog.text
    assert len(result()) == 5 + insert.startswith("INSERT INTO")


@pytest.mark.parametrize("how", ["full", "read-only"])
@pytest.mark.parametrize("insert", INSERTS, ids=["into", "overwrite"])
def test_a_full_or_read_only_disk_for_the_table_keeps_the_old_rows(spark, tmp_path, how, insert):
    """What was there stays, where plain Spark's overwriting has taken it away already."""
    spark.sql("DROP TABLE IF EXISTS disks.result")
    with small_disk(tmp_path / "disk", kilobytes=256, in_use=True) as folder:
        spark.sql(
            "CREATE TABLE disks.result (id INT) PARTITIONED BY (d INT) STORED AS PARQUET "
            f"LOCATION '{folder}/table'"
        )
        spark.sql("INSERT INTO disks.result VALUES (100, 1)")
        fill(folder) if how == "full" else read_only(folder)
        failed = run_job(spark, Job(insert + QUERY, str(tmp_path / "1.json"), Stages.BOTH))
        assert failed.status is Status.FAILED
        spark.sql("REFRESH TABLE disks.result")
        assert [tuple(row) for row in spark.table("disks.result").collect()] == [(100, 1)]
        if how == "full":
            (folder / "filler").unlink()
            again = run_job(spark, Job(insert + QUERY, str(tmp_path / "2.json"), Stages.BOTH))
            assert again.status is Status.DONE
            spark.sql("REFRESH TABLE disks.result")
            assert spark.table("disks.result").count() == 5 + insert.startswith("INSERT INTO")
        spark.sql("DROP TABLE disks.result") if how == "full" else None
    spark.sql("DROP TABLE IF EXISTS disks.result")
