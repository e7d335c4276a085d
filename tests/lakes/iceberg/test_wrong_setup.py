"""A wrong set-up of Iceberg gives one clear line, not a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_hive_opt.documents.job import Status
from airflow_hive_opt.metastores.iceberg.catalog import CatalogError, IcebergTables
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.spark.application.run import run_job
from tests.lakes.iceberg.conftest import CATALOG, EXTENSIONS, JDBC_DATABASE
from tests.lakes.jars import SPARK
from tests.services.jars import jars
from tests.spark.stages import job_of

MERGE = "MERGE INTO lake.dw.t t USING lake.dw.s s ON t.day = s.day WHEN MATCHED THEN DELETE"


def said(tmp_path, sql: str, conf: dict[str, str]) -> list[str]:
    """The errors of a command that fails, a line each."""
    done = run(tmp_path, sql, conf)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("error")]


def run(tmp_path, sql: str, conf: dict[str, str]) -> subprocess.CompletedProcess:
    settings = {**conf, "spark.log.level": "OFF", "spark.ui.enabled": "false"}
    given = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    command = [sys.executable, "-m", "airflow_hive_opt.commands.main", "run", *given, sql]
    return subprocess.run(
        [*command, "--warehouse", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


def catalog(tmp_path) -> dict[str, str]:
    return {
        "spark.sql.catalog.lake": CATALOG,
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "lake"),
    }


def test_a_missing_iceberg_jar_is_one_clear_line(runtime, tmp_path):
    (line,) = said(tmp_path, MERGE, catalog(tmp_path))
    assert "Cannot find catalog plugin class for catalog 'lake'" in line


def test_a_missing_catalog_is_one_clear_line(tmp_path):
    (line,) = said(tmp_path, "SELECT * FROM lake.dw.t", {})
    assert "there is no table lake.dw.t" in line


def test_a_delete_runs_without_icebergs_extensions(runtime, tmp_path):
    conf = {**catalog(tmp_path), "spark.jars": runtime}
    days = "SELECT * FROM VALUES (DATE'2024-01-01'), (DATE'2024-01-02') AS d(day)"
    made = run(
        tmp_path, f"CREATE TABLE lake.dw.t USING iceberg PARTITIONED BY (day) AS {days}", conf
    )
    assert made.returncode == 0
    source = "(SELECT DATE'2024-01-01' AS day)"
    done = run(tmp_path, MERGE.replace("lake.dw.s", source), conf)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    left = run(tmp_path, "SELECT * FROM lake.dw.t", conf)
    assert left.stdout.splitlines() == ["day", "2024-01-02"]


def test_an_iceberg_jar_for_another_spark_is_one_clear_line(runtime, tmp_path):
    (wrong,) = jars("iceberg-4.0" if SPARK == "3.5" else "iceberg-3.5")
    conf = {**catalog(tmp_path), "spark.jars": str(wrong), "spark.sql.extensions": EXTENSIONS}
    (line,) = said(tmp_path, MERGE, conf)
    assert "Is a jar for another version of Spark or Scala?" in line


@contextmanager
def of_a_newer_format(file: Path):
    """The file of a table's metadata with a format version that does not exist yet."""
    text = file.read_text()
    file.write_text(re.sub(r'"format-version" ?: ?\d', '"format-version":9', text))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    yield
    file.write_text(text)


@pytest.mark.parametrize("catalog", ["lake", "db"])
def test_a_table_of_a_newer_format_version_is_one_clear_line(
    lake, postgres_server, tmp_path, catalog
):
    """Spark reads the one of a folder, because Iceberg tries others for more than a minute."""
    lake.sql(f"CREATE NAMESPACE {catalog}.newer")
    lake.sql(f"CREATE TABLE {catalog}.newer.t USING iceberg AS SELECT 1 AS n")
    log = lake.sql(f"SELECT file FROM {catalog}.newer.t.metadata_log_entries").collect()
    with of_a_newer_format(Path(log[-1][0].removeprefix("file:"))):
        if catalog == "lake":
            sql = "SELECT t.n FROM lake.newer.t JOIN (SELECT 1 AS n) k ON t.n = k.n"
            job = job_of(sql, path=str(tmp_path / "descriptor.json"))
            outcome = run_job(lake.newSession(), job)
            assert outcome.status is Status.FAILED
            said = outcome.message
            assert "Cannot read unsupported version" in said
        else:
            properties = {"type": "sql", "uri": postgres_server.url(JDBC_DATABASE)}
            required = Required("db.newer.t", ("n",), ("n",), ("int",), ((1,),), "iceberg")
            with pytest.raises(CatalogError, match="Is the table newer than") as raised:
                IcebergTables(properties).absent(required)
            said = str(raised.value)
            assert postgres_server.password not in said
    assert "\n" not in said
    lake.sql(f"DROP TABLE {catalog}.newer.t")
    lake.sql(f"DROP NAMESPACE {catalog}.newer")
