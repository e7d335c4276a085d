"""Random star joins on tables in a metastore: the worker's partitions are Spark's, or more.

``FUZZ_QUERIES=1000 FUZZ_SEED=7`` tests more of them.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fuzz.findings import count_of, repeat, report
from tests.services.java_options import SHORT_LIVED

QUERIES = count_of("FUZZ_QUERIES", 60)


@pytest.mark.slow
def test_random_star_joins_have_sparks_rows_and_at_least_its_partitions(
    metastore_service, tmp_path
):
    """Another process has the Spark: this one's has a metastore of its own."""
    output = tmp_path / "found.json"
    conf = {
        **metastore_service.spark_conf(),
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        # Hive 2.3 on PostgreSQL can't compare the default partition of a DATE column
        "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.master": "local[2]",
    }
    pairs = [f"{name}={value}" for name, value in conf.items()]
    command = [sys.executable, "-m", "tests.worker.star_joins", metastore_service.uri, str(output)]
    command += [str(QUERIES), *pairs]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[-5_000:]
    found = json.loads(output.read_text())
    seen = found["seen"]
    counted = f"{repeat(FUZZ_QUERIES=QUERIES)}: {seen}; {found['why']}"
    print(counted)
    assert not found["wrong"], report(found["wrong"], FUZZ_QUERIES=QUERIES)
    assert seen["same partitions"] > QUERIES / 5, counted
    assert seen["rows equal"] > QUERIES / 3, counted
