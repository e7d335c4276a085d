"""However a part ends, and whenever, the statement has written once at the end.

``matrix.rounds`` says which variables choose the rounds. SEED also chooses the moments of a commit.
RESULTS names a file to which the rounds are added; the table at the end is then that of all of it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from tests.kills.cluster_task import ClusterTask
from tests.kills.connect_task import ConnectTask, DeferredConnectTask
from tests.kills.make_tables import TEMPLATE
from tests.kills.matrix import adds_again, at_once
from tests.kills.rounds import Round, Shared, line_of, table_of

pytestmark = pytest.mark.faults
SEED = os.environ.get("SEED") or "1"


@pytest.mark.parametrize("together", at_once(os.environ), ids=lambda each: str(each[0][0]))
def test_rounds(airflow, clusters, server, postgres_server, tables, plain, results, together):
    client, folder = tables
    before, whole = plain
    shared = Shared(airflow, server)

    def ran(place, case, number):
        with shared.lock:
            table = client.copy(TEMPLATE)
        at = folder / table
        if case.kind == "cluster":
            task = ClusterTask(airflow, clusters[place], postgres_server, at, case.verb, place)
        else:
            kind = DeferredConnectTask if case.kind == "deferred" else ConnectTask
            task = kind(airflow, server, postgres_server, at, case.verb, place)

        def state():
            with shared.lock:
                return client.state(table)

        chance = Random(f"{SEED} {case} {number}")
        return Round(case, task, shared, state).run(chance, before, whole[case.verb])

    with ThreadPoolExecutor(len(together)) as threads:
        running = [threads.submit(ran, place, *each) for place, each in enumerate(together)]
    found = [each.result() for each in running]
    results += found
    if name := os.environ.get("RESULTS"):
        with Path(name).open("a") as file:
            file.writelines(f"{line_of(result)}\n" for result in found)
    print("\n".join(table_of([result])[1] for result in found))
    bad = [result for result in found if not result.is_good]
    if bad and all(result.is_twice and adds_again(result.case) for result in bad):
        pytest.xfail("an INSERT INTO whose driver is killed after its commit adds its rows again")
    assert not bad, "\n".join(f"{result}\n{result.log}" for result in bad)
