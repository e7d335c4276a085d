"""The servers of the end-to-end suite, and a small warehouse in a real metastore."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.processes import HOST

MAKE_TABLES = Path(__file__).parent / "make_tables.py"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def warehouse(metastore_service):
    """Spark's settings for the metastore, with the tables of ``make_tables.py`` in it."""
    conf = {
        **metastore_service.spark_conf(),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }
    pairs = [f"{name}={value}" for name, value in conf.items()]
    subprocess.run([sys.executable, str(MAKE_TABLES), *pairs], check=True)
    return conf


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A standalone cluster: a master and two workers of one core."""
    from tests.services.standalone import standalone

    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running
