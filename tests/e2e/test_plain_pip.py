"""The wheel, installed by pip alone into an empty environment, prunes from a DAG and the CLI."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from airflow_hive_opt import __version__

PROJECT = Path(__file__).parents[2]
JOIN = "SELECT f.id, f.p FROM fact f JOIN keys k ON f.p = k.p WHERE k.id < 3"
TEN = "SELECT CAST(id AS INT) id, CAST(id AS INT) p FROM range(10)"
DAG = f"""
from airflow.sdk import DAG
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

with DAG("sales", schedule=None):
    MapJoinPruneOperator(task_id="pruned", sql="INSERT OVERWRITE TABLE result {JOIN}")
"""


def build(kind: str, source: Path, folder: Path) -> Path:
    """The wheel or sdist of a source tree."""
    hatchling = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(hatchling, cwd=source, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build("wheel", PROJECT, tmp_path_factory.mktemp("wheel"))


def test_the_source_distribution_builds_the_same_wheel(wheel, tmp_path):
    source = build("sdist", PROJECT, tmp_path / "sdist")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.glob("airflow_hive_opt-*")
    assert contents(build("wheel", tree, tmp_path / "again")) == contents(wheel)
    checked = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source)]
    subprocess.run(checked, check=True)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of programs of an environment that pip has made."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    began = time.monotonic()
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", str(wheel)]
    subprocess.run(pip, check=True)
    print(f"pip install: {time.monotonic() - began:.0f} s")
    return folder / "bin"


@pytest.fixture(scope="module")
def run(installed, tmp_path_factory):
    """Runs a program of that environment, with a separate Airflow home and warehouse."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "dags").mkdir()
    (folder / "dags" / "sales.py").write_text(DAG)
    own = ("AIRFLOW", "PYTHONPATH", "SPARK")  # of the tests' own process
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(own)},
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_HIVE_OPT_WAREHOUSE": str(folder / "warehouse"),
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [installed / command[0], *command[1:]],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    for sql in (
        f"CREATE TABLE fact USING parquet PARTITIONED BY (p) AS {TEN}",
        f"CREATE TABLE keys USING parquet AS {TEN}",
        "CREATE TABLE result (id INT, p INT) USING parquet",
    ):
        run("airflow-hive-opt", "run", sql)
    return run


def test_the_wheel_prunes_from_the_command_line(run):
    assert run("airflow-hive-opt", "--version").stdout.split()[-1] == __version__
    done = run("airflow-hive-opt", "run", JOIN)
    assert sorted(done.stdout.split("\n")[1:4]) == ["0\t0", "1\t1", "2\t2"]
    (told,) = done.stderr.splitlines()  # Spark's lines are left out by a file in the wheel
    assert told.startswith("kept 3 of 10 partitions")


def test_the_wheel_prunes_from_a_dag(run):
    run("airflow", "db", "migrate")
    done = run("airflow", "dags", "test", "sales")
    assert "kept 3 of 10 partitions" in done.stdout + done.stderr
    rows = run("airflow-hive-opt", "run", "SELECT id, p FROM result ORDER BY id").stdout
    assert rows.split("\n")[1:4] == ["0\t0", "1\t1", "2\t2"]
