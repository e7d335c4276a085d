"""A killed write of one partition leaves the old rows or all new ones. A retry doubles no rows.

Where it is killed is a call to the metastore that is held, or a file that appears: no clock.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from upath import UPath

from airflow_hive_opt.documents.job import Job, Stages, Status, write_job
from tests.faults.one_run import STATUSES
from tests.faults.proxy import proxy
from tests.faults.tables import DATABASE, JOIN, Tables
from tests.services.java_options import SHORT_LIVED
from tests.services.processes import HOST
from tests.services.thrift import create_database, thrift_client

pytestmark = pytest.mark.faults
PROJECT = Path(__file__).parents[2]
QUERY = f"SELECT s.item FROM {JOIN}"
# Minutes of work, whose rows are none.
LONG = f"{QUERY} CROSS JOIN range(4000000000) r WHERE r.id < 0 AND s.item >= 0 OR r.id % 7 = 9"
BEFORE = {"x/1": (100,), "x/2": (101,), "y/1": (102,)}
ROWS = (0, 0, 1, 1, 2, 2)
OVERWRITE = "INSERT OVERWRITE TABLE {t} PARTITION (a = 'x', b = 1) "
INTO = "INSERT INTO TABLE {t} PARTITION (a = 'x', b = 1) "
EMPTIED = {name: items for name, items in BEFORE.items() if name != "x/1"}
WHOLE = {OVERWRITE: {**BEFORE, "x/1": ROWS}, INTO: {**BEFORE, "x/1": (*ROWS, 100)}}


@pytest.fixture(scope="module")
def place(metastore_service, tmp_path_factory):
    """A proxy before the metastore, Spark's settings for it, and tables made past it."""
    folder = tmp_path_factory.mktemp("kills")
    with proxy(metastore_service.port) as meter, thrift_client(metastore_service) as client:
        conf = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.hadoop.hive.metastore.uris": meter.uri,
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
        }
        create_database(client, DATABASE, f"file:{folder}/{DATABASE}")
        made = subprocess.run(
            [sys.executable, "-m", "tests.faults.make_tables", *_pairs(conf)],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr.decode()[-2000:]
        yield meter, conf, Tables(client, f"file:{folder}/copies"), folder


def _pairs(conf: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in conf.items()]


def start(place, table: str, sql: str, number: int) -> subprocess.Popen:
    _, conf, _, folder = place
    path = UPath(folder / "runs" / table / f"{number}.json")
    at = write_job(Job(sql.format(t=f"{DATABASE}.{table}"), str(path), Stages.BOTH), path)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.one_run", str(at), *_pairs(conf)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.DEVNULL,
        stderr=(folder / f"{table}-{number}.log").open("w"),
    )


def kill(victim: str, process: subprocess.Popen, meter) -> None:
    """Ends the Python process or its JVM; the other one then ends by itself.

    Afterwards a held call continues, because the remaining process may be waiting for it.
    """
    started = psutil.Process(process.pid).children(recursive=True)
    (jvm,) = (found for found in started if found.name() == "java")
    os.kill(process.pid if victim == "task" else jvm.pid, signal.SIGKILL)
    meter.go.set()
    process.wait(60)
    jvm.wait(60)


def ended(process: subprocess.Popen) -> Status:
    """How an attempt that nobody has killed has ended."""
    return STATUSES[process.wait(120)]


@pytest.fixture(scope="module")
def calls(place):
    """The metastore calls of a whole run, by statement."""
    found = {}
    meter, _, tables, _ = place
    for verb in (OVERWRITE, INTO):
        table = tables.copy("hive")
        meter.plan()
        assert ended(start(place, table, verb + QUERY, 1)) is Status.DONE
        assert tables.state(table) == WHOLE[verb]
        found[verb] = list(meter.calls)
    return found


@pytest.mark.parametrize("victim", ["task", "jvm"])
@pytest.mark.parametrize("verb", [OVERWRITE, INTO], ids=["overwrite", "into"])
@pytest.mark.parametrize("share", [0.05, 0.4, 0.7, 0.9, 1.0])
def test_a_run_killed_at_any_metastore_call_leaves_old_or_all_new_rows(
    place, calls, verb, victim, share
):
    """From before the local task to the last call, after the files are in their place."""
    meter, _, tables, _ = place
    table = tables.copy("hive")
    meter.hold(max(1, round(share * len(calls[verb]))))
    process = start(place, table, verb + QUERY, 1)
    assert meter.held.wait(120)
    kill(victim, process, meter)
    meter.plan()
    after = tables.state(table)
    assert after in (BEFORE, WHOLE[verb])
    done = process.returncode == STATUSES.index(Status.DONE)  # the last call is for the report
    assert after == WHOLE[verb] or not done
    again(place, table, verb, after, done)


@pytest.mark.parametrize("victim", ["task", "jvm"])
@pytest.mark.parametrize("verb", [OVERWRITE, INTO], ids=["overwrite", "into"])
def test_a_run_killed_during_the_join_leaves_the_old_rows(place, verb, victim):
    meter, _, tables, folder = place
    meter.plan()
    table = tables.copy("hive")
    process = start(place, table, verb + LONG, 1)
    hidden = (".hive-opt-staging*", "_temporary")
    deadline = time.monotonic() + 120
    while not any(list((folder / "copies" / table).glob(name)) for name in hidden):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    kill(victim, process, meter)
    assert tables.state(table) == BEFORE
    again(place, table, verb, BEFORE)


@pytest.mark.parametrize("victim", ["task", "jvm"])
@pytest.mark.parametrize("verb", [OVERWRITE, INTO], ids=["overwrite", "into"])
def test_the_rows_of_finished_tasks_of_a_killed_run_are_not_added_by_the_next_one(
    place, verb, victim
):
    """As plain Spark adds them: its jobs share a folder, and move all files there."""
    meter, _, tables, folder = place
    meter.plan()
    table = tables.copy("hive")
    process = start(place, table, f"{verb}{QUERY} UNION ALL {LONG}", 1)
    deadline = time.monotonic() + 120
    while not list((folder / "copies" / table).rglob("task_*")):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    kill(victim, process, meter)
    assert tables.state(table) == BEFORE
    again(place, table, verb, BEFORE)


@pytest.mark.parametrize("victim", ["task", "jvm"])
def test_a_run_killed_during_the_exchange_of_the_partition_can_be_retried(place, victim):
    """Between two renames, if the kill is quick enough; the next attempt needs nothing of it."""
    meter, _, tables, folder = place
    meter.plan()
    table = tables.copy("hive")
    root = folder / "copies" / table
    process = start(place, table, OVERWRITE + QUERY, 1)
    deadline = time.monotonic() + 120
    while not list(root.glob(".hive-opt-old-*")) and process.poll() is None:
        assert time.monotonic() < deadline
    if process.poll() is None:
        kill(victim, process, meter)
    after = tables.state(table)
    assert after in (BEFORE, WHOLE[OVERWRITE], EMPTIED)
    print(f"killed {victim}: {after}")
    again(place, table, OVERWRITE, after)


def again(place, table: str, verb: str, after, done: bool = False) -> None:
    """A retry: it does not add rows that the first attempt has added, and takes its outcome."""
    process = start(place, table, verb + QUERY, 2)
    refuses = verb == INTO and after != BEFORE and not done
    assert ended(process) is (Status.REFUSED if refuses else Status.DONE)
    assert place[2].state(table) == WHOLE[verb]
