"""Set-ups that can't work: one clear line, and no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from tests.lakes.delta.conftest import CATALOG, EXTENSION
from tests.lakes.jars import SPARK
from tests.lakes.runs import rows_of
from tests.lakes.runs import run as run_both
from tests.services.jars import jars

MERGE = (
    "MERGE INTO t USING (SELECT DATE'2024-01-01' AS day) s ON t.day = s.day "
    "WHEN MATCHED THEN DELETE"
)
CONF = {"spark.sql.extensions": EXTENSION, "spark.sql.catalog.spark_catalog": CATALOG}


def said(tmp_path, sql: str, settings: dict[str, str]) -> list[str]:
    done = run(tmp_path, sql, settings)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("error")]


def run(tmp_path, sql: str, settings: dict[str, str]):
    settings = {**settings, "spark.log.level": "OFF", "spark.ui.enabled": "false"}
    given = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    command = [sys.executable, "-m", "airflow_hive_opt.commands.main", "run", *given, sql]
    return subprocess.run(
        [*command, "--warehouse", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_missing_delta_jars_are_one_clear_line(tmp_path):
    (line,) = said(tmp_path, MERGE, CONF)
    assert "DeltaCatalog" in line


def test_delta_jars_for_another_spark_are_one_clear_line(runtime, tmp_path):
    wrong = jars("delta-4.2" if SPARK == "3.5" else "delta-3.5")
    conf = {**CONF, "spark.jars": ",".join(map(str, wrong))}
    (line,) = said(tmp_path, MERGE, conf)
    assert "Is a jar for another version of Spark or Scala?" in line


def test_missing_settings_of_delta_are_one_clear_line(runtime, tmp_path):
    conf = {"spark.jars": runtime}
    days = "SELECT id, DATE'2024-01-01' + CAST(id AS int) AS day FROM range(2)"
    made = run(
        tmp_path, f"CREATE TABLE t USING delta PARTITIONED BY (day) AS {days}", {**conf, **CONF}
    )
    assert made.returncode == 0, made.stderr
    (line,) = said(tmp_path, MERGE, conf)
    assert "MERGE" in line or "Delta" in line


@pytest.fixture
def table(lake, tmp_path):
    lake.sql(
        f"CREATE TABLE setup USING delta PARTITIONED BY (day) LOCATION '{tmp_path}/setup' AS "
        "SELECT id, DATE'2024-01-01' + CAST(id % 3 AS int) AS day FROM range(9)"
    )
    yield "setup"
    lake.sql("DROP TABLE setup")


def test_a_delta_entry_without_deltas_catalog_warns_in_the_log(lake, table, tmp_path, caplog):
    """The metastore's entry says Delta, but not how the table is partitioned."""
    session = lake.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", "")
    found = SparkCatalog(session).table("default.setup")
    assert (found.provider, found.clustered_by) == ("", ())
    assert "set it to org.apache.spark.sql.delta.catalog.DeltaCatalog" in caplog.text


def test_a_table_of_a_newer_protocol_is_one_clear_line(lake, table, tmp_path):
    log = Path(tmp_path, "setup", "_delta_log")
    features = {"readerFeatures": ["lateRows"], "writerFeatures": ["lateRows"]}
    newer = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (log / f"{1:020}.json").write_text(json.dumps(newer))
    sql = "SELECT t.id FROM setup t JOIN (SELECT DATE'2024-01-02' AS day) d ON t.day = d.day"
    texts = []
    for attempt in (lambda: rows_of(lake, sql), lambda: run_both(lake, sql, tmp_path)):
        with pytest.raises((PySparkException, Py4JJavaError)) as caught:
            attempt()
        texts.append(in_words(caught.value))
    assert "lateRows" in texts[1], texts
    assert "\n" not in texts[1]
