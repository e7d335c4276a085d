"""However a part ends, and whenever, the statement has written once at the end.

``matrix.rounds`` says which variables choose the rounds. SEED also chooses the moments of a commit.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.kills.cluster_task import ClusterTask
from tests.kills.connect_task import ConnectTask, DeferredConnectTask
from tests.kills.make_tables import TEMPLATE
from tests.kills.matrix import adds_again, rounds
from tests.kills.rounds import Round, table_of

pytestmark = pytest.mark.faults
SEED = os.environ.get("SEED") or "1"


@pytest.mark.parametrize(("case", "number"), rounds(os.environ), ids=str)
def test_a_round(airflow, cluster, server, postgres_server, tables, plain, results, case, number):
    client, folder = tables
    before, whole = plain
    table = client.copy(TEMPLATE)
    at = folder / table
    if case.kind == "cluster":
        task = ClusterTask(airflow, cluster, at, case.verb)
    else:
        kind = DeferredConnectTask if case.kind == "deferred" else ConnectTask
        task = kind(airflow, server, postgres_server, at, case.verb)
    found = Round(case, task, airflow, server, lambda: client.state(table))
    result = found.run(Random(f"{SEED} {case} {number}"), before, whole[case.verb])
    results.append(result)
    print(table_of([result])[1])
    if result.is_twice and adds_again(case):
        pytest.xfail("an INSERT INTO whose driver is killed after its commit adds its rows again")
    assert result.is_good, f"{result}\n{result.log}"
