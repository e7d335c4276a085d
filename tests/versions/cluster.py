"""What a task ships to a cluster runs on the cluster's own Spark and Python.

python -m tests.versions.cluster PYTHON REPORT

``PYTHON`` is an interpreter with PySpark and nothing else of ours, whose ``spark-submit`` runs the
jobs: in two stages, in one, and one that writes. Prints what went wrong, and writes to ``REPORT``
how many checks passed, failed and were skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from upath import UPath

from airflow_hive_opt.documents.job import (
    Job,
    Outcome,
    Stages,
    Status,
    read_outcome,
    write_job,
)
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.provider.submission import prepare_environment
from airflow_hive_opt.spark.application.shipping import ship
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from tests.spark.handed_over import map_join_of

JOIN = "SELECT f.id, f.p FROM fact f JOIN keys k ON f.p = k.p WHERE k.id < 3"
ROWS = {("0", "0"), ("1", "1"), ("2", "2")}
KEPT = 3
_TEN = "SELECT CAST(id AS INT) id, CAST(id AS INT) p FROM range(10)"
_TABLES = (
    f"CREATE TABLE fact USING parquet PARTITIONED BY (p) AS {_TEN}",
    f"CREATE TABLE keys USING parquet AS {_TEN}",
    "CREATE TABLE result (id INT, p INT, ds STRING) USING parquet PARTITIONED BY (ds)",
)
_WRITE = f"INSERT OVERWRITE TABLE result PARTITION (ds = 'x') {JOIN}"


class Cluster:
    """Jobs on the first ``spark-submit`` of the ``PATH``, with a warehouse in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._main, self._package = ship(folder)
        self._jobs = 0

    def job(self, sql: str, stages: Stages = Stages.BOTH) -> Job:
        """A job with a new path."""
        self._jobs += 1
        return Job(sql, str(self._folder / str(self._jobs) / "1.json"), stages, token="t")

    def run(self, job: Job) -> Outcome:
        """Submits it as the Spark provider does."""
        path = UPath(job.path)
        path.parent.mkdir(exist_ok=True)
        settings = embedded_conf(self._folder / "warehouse", "local[2]")
        conf = [part for item in settings.items() for part in ("--conf", "=".join(item))]
        files = ["--py-files", self._package, self._main, write_job(job, path)]
        done = subprocess.run(
            list(map(str, ["spark-submit", *conf, *files])),
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            outcome = read_outcome(path, job.token)
        except DescriptorError:
            raise SystemExit(
                f"spark-submit ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            ) from None
        assert (done.returncode == 0) is (outcome.status is Status.DONE), outcome
        return outcome


def main(python: str, report: str) -> int:
    """Runs the jobs; returns whether a check failed."""
    path = os.pathsep.join((str(Path(python).absolute().parent), os.environ["PATH"]))
    os.environ |= {"PATH": path, "PYSPARK_PYTHON": str(Path(python).absolute())}
    prepare_environment()  # as a task does before it submits
    with TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        for sql in _TABLES:
            made = cluster.run(cluster.job(sql))
            assert made.status is Status.DONE, made.message
        local_task = cluster.job(JOIN, Stages.LOCAL_TASK)
        listed = cluster.run(local_task)
        done = {
            "both stages": cluster.run(cluster.job(JOIN)),
            "map join": cluster.run(map_join_of(local_task, listed)),
            "INSERT": cluster.run(cluster.job(_WRITE)),
        }
        found = cluster.run(cluster.job("SELECT id, p FROM result WHERE ds = 'x'")).rows
        of_another = replace(map_join_of(local_task, listed), digest="0" * 64)
        refused = cluster.run(of_another)
    failed = [
        f"{name}: {outcome.status}, {outcome.summary}, {outcome.message}, {outcome.rows}"
        for name, outcome in done.items()
        if outcome.status is not Status.DONE
        or outcome.summary is None
        or outcome.summary["kept"] != KEPT
        or set(outcome.rows) != (ROWS if name != "INSERT" else set())
    ]
    if set(found) != ROWS:
        failed.append(f"written: {found}")
    if refused.status is Status.DONE:
        failed.append("the list of another run was taken")
    print(*failed, sep="\n")
    Path(report).write_text(json.dumps((len(done) + 2 - len(failed), len(failed), 0)))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
