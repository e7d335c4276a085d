"""However a part ends, and whenever, the statement has written once at the end.

``ROUNDS`` rounds of each case; KINDS, VERBS, VICTIMS, SIGNALS and PHASES choose cases. ``SEED``
chooses the moments of a commit.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.kills.cluster_task import ClusterTask
from tests.kills.connect_task import ConnectTask
from tests.kills.make_tables import TEMPLATE
from tests.kills.matrix import cases
from tests.kills.rounds import Round

ROUNDS = int(os.environ.get("ROUNDS") or 1)
SEED = os.environ.get("SEED") or "1"


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
@pytest.mark.parametrize("case", cases(os.environ), ids=str)
def test_a_round(airflow, cluster, server, postgres_server, tables, plain, results, case, number):
    client, folder = tables
    before, whole = plain
    table = client.copy(TEMPLATE)
    at = folder / table
    task = (
        ClusterTask(airflow, cluster, at, case.verb)
        if case.kind == "cluster"
        else ConnectTask(airflow, server, postgres_server, at, case.verb)
    )
    found = Round(case, task, airflow, server, lambda: client.state(table))
    result = found.run(Random(f"{SEED} {case} {number}"), before, whole[case.verb])
    results.append(result)
    assert result.is_good, f"{result}\n{result.log}"
