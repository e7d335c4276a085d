"""What a submitted application reports to its task, and what happens if it can't."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.conf import RuntimeConfig
from upath import UPath

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.documents.job import Job, Stages, Status, read_outcome, write_job
from airflow_hive_opt.spark.application import submitted
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.map_join import restricted_run
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.java import ensure_java

# Applications of their own: each stops its session at the end.
MAIN = """
import sys
from airflow_hive_opt.spark.application.submitted import main
for uri in sys.argv[1:]:
    print("exit code", main([uri]), flush=True)
"""


@pytest.mark.slow
def test_a_job_whose_outcome_can_not_be_written_is_not_run_twice(tmp_path):
    """A folder is in the place of the outcome; the third job can write its outcome."""
    paths = [UPath(tmp_path) / name / "1.json" for name in ("done", "refused", "told")]
    uris = [
        write_job(Job("SELECT 1", str(path), Stages.BOTH, gates=gates, token="t"), path)
        for gates, path in zip((Gates(), Gates(on_no_prune="fail"), Gates()), paths, strict=True)
    ]
    for path in paths[:2]:
        path.with_name("1.outcome.json").mkdir()
    claims.begin(paths[2], "t", "another driver of the same job")
    ensure_java()
    conf = embedded_conf(tmp_path / "warehouse", "local[1]")
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    defaults.write_text("\n".join(f"{name} {value}" for name, value in conf.items()))
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, uris), str(tmp_path / "missing.json")],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "SPARK_CONF_DIR": str(defaults.parent),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    codes = [line for line in done.stdout.splitlines() if line.startswith("exit code")]
    assert codes == [f"exit code {code}" for code in (0, 1, 0, 1)], done.stderr
    assert "the outcome is done, but it can't be written: can't write" in done.stderr
    assert "the outcome is refused, but it can't be written: can't write" in done.stderr
    assert "can't read the job" in done.stderr
    assert "Traceback" not in done.stderr
    told = read_outcome(paths[2], "t")
    assert told.rows == (("1",),)
    assert told.may_have_written  # the other driver


def test_a_failure_after_the_statement_is_a_line_in_the_log(spark, tmp_path, monkeypatch, caplog):
    """A list was left aside, and the descriptor that says so can't be written."""
    monkeypatch.setattr(
        "airflow_hive_opt.spark.map_join.texts.restrict", lambda sql, *_: sql + " oh no"
    )
    monkeypatch.setattr("airflow_hive_opt.spark.application.run.without_joins", lambda *_: None)
    write, written = descriptors.write, []

    def once(descriptor, path):
        if written:
            raise MemoryError("of a class that nobody expects")
        written.append(path)
        write(descriptor, path)

    monkeypatch.setattr(descriptors, "write", once)
    spark.sql("CREATE TABLE IF NOT EXISTS told (n INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    spark.sql("INSERT OVERWRITE TABLE told PARTITION (p) VALUES (1, 1), (2, 2)")
    (tmp_path / "1.report.json").mkdir()
    job = Job(
        "SELECT n FROM told WHERE p IN (SELECT 1)",
        str(tmp_path / "1.json"),
        Stages.BOTH,
        token="t",
    )
    outcome = run_job(spark, job)
    spark.sql("DROP TABLE told")
    assert (outcome.status, outcome.token, outcome.rows) == (Status.DONE, "t", (("1",),))
    assert "is not that of the statement that ran: of a class" in caplog.text
    assert "the report can't be stored" in caplog.text


def test_no_call_after_the_statement_can_fail_the_task(spark, tmp_path, monkeypatch):
    """A retry would write the rows again."""
    module, ran = "airflow_hive_opt.spark.map_join.restricted_run", []
    execute, get = restricted_run.execute, RuntimeConfig.get

    def watched(*arguments):
        answer = execute(*arguments)
        ran.append(answer)
        return answer

    def gone(conf, *arguments):
        if ran:
            raise ConnectionError("the server is gone")
        return get(conf, *arguments)

    monkeypatch.setattr(f"{module}.execute", watched)
    monkeypatch.setattr(RuntimeConfig, "get", gone)
    outcome = run_job(spark, Job("SELECT 1", str(tmp_path / "1.json")))
    assert ran
    assert outcome.status is Status.DONE
    assert outcome.summary["application_id"] == spark.sparkContext.applicationId


def test_a_task_that_has_ended_is_gone_even_if_nobody_asks_how():
    """As in a container whose first process asks after no child of others."""
    task = subprocess.Popen(["sleep", "60"])
    assert submitted._lives(task.pid)
    task.kill()
    os.waitid(os.P_PID, task.pid, os.WEXITED | os.WNOWAIT)
    assert not submitted._lives(task.pid)
    task.wait()
    assert not submitted._lives(task.pid)
