"""Spark, the worker and a sensor on a metastore with Kerberos."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.secured.conftest import java_options
from tests.services.metastore import site_xml


@pytest.fixture(scope="module")
def made(with_kerberos, realm, tmp_path_factory):
    """What Spark has made of a statement, pruned and plain."""
    folder = tmp_path_factory.mktemp("spark")
    conf = {"spark.driver.extraJavaOptions": java_options(realm)}
    (folder / "hadoop").mkdir()
    of_hadoop = {"hadoop.security.authentication": "kerberos"}
    (folder / "hadoop" / "core-site.xml").write_text(site_xml(of_hadoop))
    pairs = [f"{name}={value}" for name, value in conf.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.secured.spark_side", str(folder), *pairs],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW_CONN_SECURED": with_kerberos.connection(),
            "HADOOP_CONF_DIR": str(folder / "hadoop"),
        },
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-5_000:]
    print(done.stderr[-6000:])
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("local_task", ["worker", "spark"])
def test_a_run_is_pruned_and_right(made, local_task):
    found = made[local_task]
    assert found["rows"] == made["plain"] == [[0], [1], [2]]
    print(found["summary"])
