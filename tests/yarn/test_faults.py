"""Applications on YARN whose parts are killed, at every phase of statements that write.

``YARN_FAULTS=13`` runs each 13th case, which is the default, and ``YARN_FAULTS=1`` all of them.
``YARN_KINDS="create,several"`` chooses the statements, by their names in tests/faults/tables.py;
``YARN_KINDS=all`` takes all. Where an application is killed is a call to the metastore that is
held, or a task of Spark that has finished while others run: no clock.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from tests.faults.proxy import proxy
from tests.faults.tables import DATABASE, KINDS, SOURCES, Kind, State, Tables
from tests.services.java_options import SHORT_LIVED
from tests.services.thrift import create_database, thrift_client
from tests.yarn.tasks import (
    EXECUTOR,
    LAUNCHER,
    MASTER,
    Started,
    Store,
    containers,
    context,
    made,
    submitter,
    wait_until,
    worker,
)

pytestmark = pytest.mark.faults
SHARES = ("0.05", "0.4", "0.7", "0.9", "1.0")
JOIN = "join"
# Who is killed, by deploy mode. "followed" has durable=True and asks the resource manager.
VICTIMS = (
    ("client", "task"),
    ("client", "driver"),
    ("client", "application master"),
    ("client", "executors"),
    ("client", "node"),
    ("cluster", "task"),
    ("cluster", "task, followed"),
    ("cluster", "spark-submit"),
    ("cluster", "driver"),
    ("cluster", "executors"),
    ("cluster", "node"),
)
GO_ON = ("executors", "task", "task, followed")  # in cluster mode the task's application goes on
SOME = ("into static hive", "overwrite static hive", "overwrite dynamic spark", "create")
WANTED = os.environ.get("YARN_KINDS", "")
NAMES = [kind.name for kind in KINDS] if WANTED == "all" else WANTED.split(",") if WANTED else SOME
EACH = int(os.environ.get("YARN_FAULTS", "13"))
CASES = [
    pytest.param(phase, *victim, name, id=f"{phase}-{' '.join(victim)}-{name}")
    for phase, victim, name in itertools.product((*SHARES, JOIN), VICTIMS, NAMES)
][::EACH]
BY_NAME = {kind.name: kind for kind in KINDS}


class Place:
    """The cluster behind a proxy of its metastore, and tables made past both."""

    def __init__(self, cluster, connect, meter, conf, tables: Tables, folder: Path, session):
        self.cluster, self.connect, self.meter, self.conf = cluster, connect, meter, conf
        self.tables, self.folder, self.session = tables, folder, session
        self.calls: dict[tuple[str, str], int] = {}
        self.complete: dict[str, State] = {}
        self.of_plain: dict[str, list[State]] = {}
        self.counts: Counter[str] = Counter()

    def operator(self, folder: Path, sql: str, **options):
        return made(MapJoinPruneOperator, sql, folder, self.conf, local_task="spark", **options)

    def files(self, table: str) -> set[Path]:
        """The files with rows that readers see, whether the metastore knows the folder or not."""
        roots = (self.folder / "copies" / table, self.folder / DATABASE / table)
        return {
            path
            for root in roots
            for path in root.rglob("part-*")
            if not any(part[0] in "._" for part in path.relative_to(root).parts)
        }

    def has_finished_a_task(self, table: str) -> bool:
        """Whether one of Spark's tasks has handed its files over while others still run."""
        roots = (self.folder / "copies" / table, self.folder / DATABASE / table)
        for root in roots:
            with suppress(FileNotFoundError):
                if any(root.rglob("task_*")):
                    return True
                staged = (f for f in root.rglob("part-*") if ".spark-staging" in str(f))
                if any(file.stat().st_size > 100 for file in staged):
                    return True
        return False

    def last(self) -> dict:
        return self.cluster.applications()[0]


@pytest.fixture(scope="module")
def place(cluster, session, metastore_service, tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    with proxy(metastore_service.port) as meter, thrift_client(metastore_service) as client:
        options = ("spark.driver", "spark.executor", "spark.yarn.am")
        conf = {
            **metastore_service.spark_conf(),
            **cluster.spark_conf(),
            "spark.hadoop.hive.metastore.uris": meter.uri,
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
            "spark.sql.shuffle.partitions": "2",
            **{f"{name}.extraJavaOptions": SHORT_LIVED for name in options},
        }
        create_database(client, DATABASE, f"file:{folder}/{DATABASE}")
        for sql in SOURCES:
            session.sql(sql)
        tables = Tables(client, f"file:{folder}/copies")
        found = Place(cluster, None, meter, conf, tables, folder, session)
        yield found
        print(f"\n{dict(found.counts)}")


def long(kind: Kind, rows: int) -> str:
    """The statement with tasks that run for long and find no row, beside those that finish."""
    query = kind.sql[kind.sql.index("SELECT") :]
    return (
        f"{kind.sql} UNION ALL {query} CROSS JOIN range(0, {rows}, 1, 2) r "
        "WHERE pmod(hash(s.item, r.id), 7) = 9"
    )


def whole(place: Place, kind: Kind, mode: str) -> None:
    """A run that nothing disturbs counts the calls, and writes what plain Spark writes."""
    if kind.name not in place.complete:
        table = place.tables.copy(kind.template)
        place.session.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
        place.session.sql(kind.sql.format(t=f"{DATABASE}.{table}"))
        place.complete[kind.name] = place.tables.state(table)
        place.tables.drop(table)
    if (kind.name, mode) not in place.calls:
        table = place.tables.copy(kind.template)
        place.meter.plan()
        sql = kind.sql.format(t=f"{DATABASE}.{table}")
        place.operator(place.folder / "runs" / table, sql).execute(context())
        place.calls[kind.name, mode] = len(place.meter.calls)
        assert place.tables.state(table) == place.complete[kind.name]
        place.tables.drop(table)
        place.counts["whole runs"] += 1


def kill(place: Place, mode: str, victim: str, process: int) -> None:
    """Kills a part of the application that the task in ``process`` has started."""
    cluster = place.cluster
    if victim.startswith("task"):
        jvms = [submitter(process)] if mode == "client" else []
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        place.meter.go.set()
        for jvm in jvms:  # the driver ends with its task
            jvm.wait(60)
    elif victim == "spark-submit" or (mode, victim) == ("client", "driver"):
        submitter(process).kill()
    elif victim == "node":
        cluster.kill_node()
        cluster.start_node()
    else:
        kinds = {"driver": MASTER, "application master": LAUNCHER, "executors": EXECUTOR}
        wait_until(lambda: containers(cluster, kinds[victim]))
        for found in containers(cluster, kinds[victim]):
            found.kill()


def is_final(place: Place) -> bool:
    return place.last()["state"] in ("FINISHED", "FAILED", "KILLED")


def plus(state: State, more: State, less: State) -> State:
    """The rows of ``state``, and those of ``more`` that ``less`` has not."""
    new = {
        part: Counter(items) - Counter((less or {}).get(part, ()))
        for part, items in (more or {}).items()
    }
    parts = {**(state or {}), **new}
    return {
        part: tuple(sorted([*(state or {}).get(part, ()), *new.get(part, Counter()).elements()]))
        for part in parts
    }


def is_within(less: State, state: State, more: State) -> bool:
    """Whether every partition has the rows of ``less``, and none that ``more`` has not."""
    return all(
        Counter((less or {}).get(part, ()))
        <= Counter((state or {}).get(part, ()))
        <= Counter((more or {}).get(part, ()))
        for part in {*(less or {}), *(state or {}), *(more or {})}
    )


def states_of_plain_spark(place: Place, kind: Kind) -> list[State]:
    """What plain Spark leaves if its driver is killed, at any phase."""
    if kind.name in place.of_plain:
        return place.of_plain[kind.name]
    found = place.of_plain[kind.name] = []
    calls = 0
    for phase in (None, *SHARES[1:], JOIN):
        table = place.tables.copy(kind.template)
        sql = (long(kind, 4 * 10**9) if phase == JOIN else kind.sql).format(t=f"{DATABASE}.{table}")
        place.meter.hold(0 if phase in (None, JOIN) else max(1, round(float(phase) * calls)))
        pairs = (f"{name}={value}" for name, value in place.conf.items())
        process = subprocess.Popen(
            [
                *(Path(sys.executable).parent / "spark-submit", "--master", "yarn"),
                *itertools.chain.from_iterable(("--conf", pair) for pair in pairs),
                *(Path(__file__).with_name("plain.py"), sql),
            ],
            stdout=subprocess.DEVNULL,
            stderr=(place.folder / f"plain-{table}.log").open("w"),
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        if phase is None:
            assert process.wait(120) == 0
            calls = len(place.meter.calls)
            assert place.tables.state(table) == place.complete[kind.name]
            continue
        if phase == JOIN:
            wait_until(lambda name=table: place.has_finished_a_task(name))
        else:
            assert place.meter.held.wait(120)
        psutil.Process(process.pid).kill()  # it has become the JVM
        place.meter.go.set()
        process.wait(60)
        wait_until(lambda: is_final(place))
        found.append(place.tables.state(table))
        place.counts["runs of plain Spark"] += 1
    return found


@pytest.mark.parametrize(("phase", "mode", "victim", "name"), CASES)
def test_a_killed_application(place, connect, tmp_path, capsys, phase, mode, victim, name):
    kind = BY_NAME[name]
    connect(place.cluster, mode)
    whole(place, kind, mode)
    complete = place.complete[name]
    table = place.tables.copy(kind.template)
    before, files = place.tables.state(table), place.files(table)
    goes_on = victim in GO_ON and (victim == "executors" or mode == "cluster")
    short = kind.sql.format(t=f"{DATABASE}.{table}")
    sql = short
    if phase == JOIN:
        sql = long(kind, 10**8 if goes_on else 4 * 10**9).format(t=f"{DATABASE}.{table}")
    options = {}
    if victim == "task, followed":
        options = {"durable": True, "yarn_track_via_rm_api": True}
    submitted = len(place.cluster.applications())

    # the first attempt, which is killed
    at = 0 if phase == JOIN else max(1, round(float(phase) * place.calls[name, mode]))
    place.meter.hold(at)
    first = process = None
    if victim.startswith("task"):
        process = worker(tmp_path, sql, place.conf, local_task="spark", **options)
    else:
        first = Started(place.operator(tmp_path, sql), context())

    def has_come() -> bool:
        ended = process.poll() is not None if process else not first.is_alive()
        told = (tmp_path / "log").read_text()[-2000:] if process else first and first.message
        reached = place.has_finished_a_task(table) if phase == JOIN else place.meter.held.is_set()
        assert reached or not ended, f"it ended before it could be killed: {told}"
        return reached

    wait_until(has_come)
    if victim == "task, followed":  # before that, no retry can know of the application
        kept = tmp_path / "store.json"
        wait_until(lambda: kept.exists() and place.last()["id"] in kept.read_text())
    kill(place, mode, victim, process.pid if process else os.getpid())
    if not goes_on:
        wait_until(lambda: is_final(place))
    place.meter.go.set()
    if first:
        first.wait(180)
    if victim == "task":
        wait_until(lambda: is_final(place), 180)
    done = first is not None and first.summary is not None
    place.counts["applications that wrote"] += 1

    # what it has left
    after = place.tables.state(table)
    if victim != "task, followed":
        if after not in (before, complete):
            assert after in states_of_plain_spark(place, kind)
            place.counts["states of plain Spark"] += 1
        if done or goes_on:
            assert after == complete

    if done:
        shown = "none"
    else:
        shown = again(place, kind, sql, short, options, tmp_path, (before, after, files))
    if victim == "task, followed":
        assert len(place.cluster.applications()) == submitted + 1
    place.counts["cases"] += 1
    with capsys.disabled():
        named = _named(after, before, complete)
        print(f"\n{phase:5}{mode:8}{victim:19}{name:23}left {named:9}retry {shown}", end=" ")


def again(place: Place, kind: Kind, sql: str, short: str, options, folder: Path, left) -> str:
    """The next attempt; returns what the table then holds, in words."""
    before, after, files = left
    complete = place.complete[kind.name]
    table = short.partition(f"{DATABASE}.")[2].split()[0]
    followed, kept = bool(options), folder / "store.json"
    committed = place.files(table) - files
    found = context(Store(json.loads(kept.read_text())) if followed else None, try_number=2)
    tried = Started(place.operator(folder, sql if followed else short, **options), found)
    tried.wait(240)
    final = place.tables.state(table)
    if followed:
        assert tried.summary is not None, tried.message
        assert final == complete
        return "followed it: complete"
    place.counts["applications that wrote"] += 1
    if kind.name.startswith("create"):
        if tried.summary is not None:
            assert final == complete
            return "complete"
        # plain Spark does not create a table that is there, or where files are
        assert re.search(
            "ALREADY_EXISTS|already exists|NON_EMPTY|not empty|non-empty", tried.message
        )
        assert final == after
        return f"failed: {tried.message[:60]}"
    assert tried.summary is not None, tried.message
    if "overwrite" in kind.name or not committed:
        assert final == complete, (final, complete)
        return "complete"
    # the first attempt had committed: the same rows again, as in plain Spark, and no more
    twice = plus(complete, complete, before)
    assert is_within(complete, final, twice), (final, twice)
    place.counts["added again after a commit"] += 1
    return "added again: the first attempt had committed"


def _named(state: State, before: State, complete: State) -> str:
    return "before" if state == before else "complete" if state == complete else "plain's"
