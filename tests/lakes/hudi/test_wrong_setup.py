"""A wrong set-up of Hudi gives one clear line, not a traceback."""

from __future__ import annotations

import subprocess
import sys

from tests.lakes.hudi.conftest import SETTINGS
from tests.services.jars import jars

SELECT = "SELECT * FROM dw.t JOIN dw.s ON t.day = s.day"


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


def said(tmp_path, sql: str, conf: dict[str, str]) -> str:
    """The error of a command that fails, which is one line."""
    done = run(tmp_path, sql, conf)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("error"))
    return line


def test_a_missing_hudi_jar_is_one_clear_line(tmp_path):
    assert "org.apache.spark.sql.hudi.catalog.HoodieCatalog" in said(tmp_path, SELECT, SETTINGS)


def test_a_jar_of_another_format_is_one_clear_line(tmp_path):
    (wrong, *_) = jars("delta-4.2")
    line = said(tmp_path, SELECT, {**SETTINGS, "spark.jars": str(wrong)})
    assert "org.apache.spark.sql.hudi.catalog.HoodieCatalog" in line


def test_a_missing_hudi_table_is_one_clear_line(runtime, tmp_path):
    line = said(tmp_path, SELECT, {**SETTINGS, "spark.jars": runtime})
    assert "dw.t" in line


def test_a_hudi_table_is_read_whole_without_hudis_catalog(runtime, tmp_path):
    made = (
        "CREATE TABLE t USING hudi PARTITIONED BY (day) TBLPROPERTIES (primaryKey = 'id') AS "
        "SELECT * FROM VALUES (1, DATE'2024-01-01'), (2, DATE'2024-01-02') AS t(id, day)"
    )
    conf = {**SETTINGS, "spark.jars": runtime}
    assert run(tmp_path, made, conf).returncode == 0
    del conf["spark.sql.catalog.spark_catalog"]
    sql = "SELECT t.id FROM t JOIN (SELECT DATE'2024-01-02' AS day) d ON t.day = d.day"
    done = run(tmp_path, sql, conf)
    printed = [line for line in done.stdout.splitlines() if not line.startswith("# WARNING")]
    assert (done.returncode, printed) == (0, ["id", "2"])  # Hudi prints warnings
    assert "is not pruned: set it to" in done.stderr


def test_a_table_written_by_a_newer_hudi_is_one_clear_line(runtime, tmp_path):
    made = "CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 2 AS day"
    conf = {**SETTINGS, "spark.jars": runtime}
    assert run(tmp_path, made, conf).returncode == 0
    (file,) = tmp_path.glob("**/t/.hoodie/hoodie.properties")
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    lines = file.read_text().replace("hoodie.table.version=9", "hoodie.table.version=99")
    file.write_text(lines)
    line = said(tmp_path, "SELECT t.id FROM t JOIN (SELECT 1 AS id) d ON t.id = d.id", conf)
    assert "version" in line.lower()
