"""Spark itself on a metastore with Kerberos: the rows, and how many partitions it has fetched."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import METASTORE_VERSION
from tests.secured.conftest import java_options
from tests.services.metastore import client_conf, site_xml


@pytest.fixture(scope="module")
def made(with_kerberos, realm, tmp_path_factory):
    """What Spark has made of a statement, pruned and plain."""
    folder = tmp_path_factory.mktemp("spark")
    conf = client_conf(METASTORE_VERSION)
    conf["spark.driver.extraJavaOptions"] = java_options(realm)
    (folder / "hadoop").mkdir()
    of_hadoop = {"hadoop.security.authentication": "kerberos"}
    (folder / "hadoop" / "core-site.xml").write_text(site_xml(of_hadoop))
    pairs = [f"{name}={value}" for name, value in conf.items()]
    output = folder / "made.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.secured.spark_side", str(folder), str(output), *pairs],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={
            **os.environ,
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW_CONN_SECURED": with_kerberos.connection(),
            "HADOOP_CONF_DIR": str(folder / "hadoop"),
        },
    )
    assert done.returncode == 0, done.stdout[-5_000:]
    # the local task on Spark has a ticket of its own for its lookups
    assert "partitions are looked up through Spark" not in done.stdout
    return json.loads(output.read_text())


@pytest.mark.parametrize("local_task", ["worker", "spark"])
def test_a_run_on_a_metastore_with_kerberos_is_pruned_and_has_plain_rows(made, local_task):
    found = made[local_task]
    assert found["rows"] == made["plain"] == [[0], [1], [2]]
    summary = found["summary"]
    assert (summary["local_task"], summary["kept"], summary["total"]) == (local_task, 3, 20)
    assert summary["work"]["map join"]["partitions_fetched"] == 3
