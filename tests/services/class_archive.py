"""Makes the archive of classes with which the tests' JVMs start, as ``make services`` does.

A JVM that maps Spark's classes from it needs half the processor time until its first statements
have run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.java import ensure_java
from tests.services.java_options import ARCHIVE, WITHOUT_ARCHIVE

APPLICATION = Path(__file__).with_name("typical_application.py")


def make(archive: Path) -> None:
    """Runs an application and writes the classes that it has loaded to ``archive``.

    If this Java can't write them, it says so and the file is empty: the tests only start more
    slowly, and ``make`` does not try again.
    """
    ensure_java()
    archive.parent.mkdir(parents=True, exist_ok=True)
    made = archive.with_suffix(".new")  # JVMs may use the one that is there
    made.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="class-archive-") as folder:
        conf = {
            **embedded_conf(Path(folder), "local[1]"),
            "spark.driver.extraJavaOptions": (
                f"{WITHOUT_ARCHIVE} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
            ),
            # so that the classes of a Spark Connect server are loaded too
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": "0",
        }
        command = [str(Path(sys.executable).with_name("spark-submit"))]
        for name, value in conf.items():
            command += ["--conf", f"{name}={value}"]
        Path(folder, "tables").mkdir()
        done = subprocess.run(
            [*command, str(APPLICATION)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    if done.returncode or not made.exists():
        print(f"Spark's classes could not be written: {done.stdout}{done.stderr}", file=sys.stderr)
        made.write_bytes(b"")
    made.replace(archive)


if __name__ == "__main__":
    make(ARCHIVE)
