"""Writes under a failing metastore: never more rows than plain Spark leaves, never a false success.

``FAULTS=5`` fails each fifth call of every kind of statement, ``FAULTS=1`` each one; without it,
each fourth of some kinds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.matrix import FAULTS
from tests.faults.tables import KINDS
from tests.services.processes import HOST

STEP = os.environ.get("FAULTS", "")
PROJECT = Path(__file__).parents[2]
SOME = ("overwrite static hive", "into dynamic hive", "create")

pytestmark = pytest.mark.faults


def test_any_failing_metastore_call_leaves_the_rows_that_plain_spark_leaves(
    metastore_service, tmp_path
):
    names = [kind.name for kind in KINDS if STEP or kind.name in SOME]
    command = [sys.executable, "-m", "tests.faults.matrix", str(metastore_service.port)]
    found = []
    with (
        (tmp_path / "stderr.log").open("w") as errors,
        subprocess.Popen(
            [*command, str(tmp_path), STEP or "4", *names],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": HOST},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as running,
    ):
        for line in running.stdout:
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            found.append(row)
            print(f"{row['kind']:25} {row['fault']:8} {row['runs']:4} runs", end=" ")
            print(f"{len(row['differing'])} differ", *row["differing"], sep="\n", flush=True)
    assert running.returncode == 0, (tmp_path / "stderr.log").read_text()[-3000:]
    print(f"{sum(row['runs'] for row in found)} runs")
    assert len(found) == len(FAULTS) * len(names)
    assert [row for row in found if row["differing"]] == []
