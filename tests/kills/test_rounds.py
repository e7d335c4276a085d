"""However a part ends, and whenever, the statement has written once at the end.

``matrix.rounds`` says which variables choose the rounds. SEED also chooses the moments of a commit.
RESULTS names a file to which the rounds are added; the table at the end is then that of all of it.
"""

from __future__ import annotations

import os
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from random import Random

import psutil
import psycopg
import pytest

from tests.kills.cluster_task import ClusterTask
from tests.kills.connect_task import ConnectTask, DeferredConnectTask
from tests.kills.make_tables import TEMPLATE
from tests.kills.matrix import groups, tasks_at_once
from tests.kills.rounds import Result, Round, Shared, line_of, table_of

pytestmark = pytest.mark.faults
SEED = os.environ.get("SEED") or "1"


@pytest.mark.parametrize("group", groups(os.environ), ids=lambda each: str(each[0][0]))
def test_rounds(airflow, clusters, servers, postgres_server, tables, plain, results, group):
    client, folder = tables
    before, whole = plain
    shared = Shared(airflow)
    free: SimpleQueue[int] = SimpleQueue()  # the numbers of tasks that do not run
    at_once = tasks_at_once(os.environ)
    for number_of_task in range(at_once):
        free.put(number_of_task)

    def ran(number_of_task, case, number):
        with shared.lock:
            table = client.copy(TEMPLATE)
        slowly = len(case.phases) > 1
        of_each = postgres_server, folder / table, case.verb, number_of_task, slowly
        if case.kind == "cluster":
            task = ClusterTask(airflow, clusters[number_of_task], *of_each)
        else:
            kind = DeferredConnectTask if case.kind == "deferred" else ConnectTask
            task = kind(airflow, servers[number_of_task], *of_each)

        def state():
            with shared.lock:
                return client.state(table)

        chance = Random(f"{SEED} {case} {number}")
        with closing(task):
            return Round(case, task, shared, state).run(chance, before, whole[case.verb])

    def kept(case, number):
        """The result, which is counted even if the round could not go on."""
        number_of_task = free.get()
        try:
            found = ran(number_of_task, case, number)
        except (AssertionError, OSError, psutil.Error, psycopg.Error) as error:
            first_line = repr(error).partition("\\n")[0]  # the rest may be a whole log
            found = Result(case, error=first_line, log=traceback.format_exc())
        finally:
            free.put(number_of_task)
        with shared.lock:
            results.append(found)
            print(table_of([found])[1], flush=True)
            if name := os.environ.get("RESULTS"):
                with Path(name).open("a") as file:
                    file.write(f"{line_of(found)}\n")
        return found

    with ThreadPoolExecutor(at_once) as threads:
        found = list(threads.map(lambda each: kept(*each), group))
    bad = [result for result in found if not result.is_good]
    assert not bad, "\n".join(f"{result}\n{result.log}" for result in bad)
