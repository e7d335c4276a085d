"""S3 fails at any request: rows are right or there is one clear line, and no row is doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import count
from pathlib import Path

import psutil
import pytest
from upath import UPath

from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status, write_job
from airflow_hive_opt.spark.application.run import run_job
from tests.cases import slow_but
from tests.faults.one_run import STATUSES
from tests.faults.tables import DATABASE, JOIN, KINDS, SOURCES, State, Tables, items_of
from tests.services.s3_server import Fault, Kind, Request, no_fault
from tests.services.thrift import create_database, thrift_client

PROJECT = Path(__file__).parents[2]
BUCKET = "lake"
QUERY = f"SELECT s.item, s.ds FROM {JOIN}"
ROWS = sorted((str(item), f"d{day}") for item in range(3) for day in range(2))
# The write that goes through a staging folder, and the kinds that Spark itself commits.
WRITES = {
    kind.name: kind
    for kind in KINDS
    if kind.name
    in ("into static spark", "overwrite static hive", "overwrite dynamic spark", "create")
}


class Objects:
    """The files of tables in the bucket, past the server."""

    def __init__(self, store) -> None:
        self._store = store

    def copy(self, source: str, target: str) -> None:
        for key, data in self._store.objects(BUCKET, _key(source)).items():
            self._store.put(BUCKET, key.replace(_key(source), _key(target), 1), data)

    def items(self, folder: str) -> tuple[int, ...]:
        prefix = _key(folder)
        found = self._store.objects(BUCKET, prefix).items()
        names = ((key.removeprefix(prefix), data) for key, data in found)
        return items_of(
            data for name, data in names if name and "/" not in name and name[0] not in "._"
        )

    def remove(self, folder: str) -> None:
        self._store.delete(BUCKET, self._store.objects(BUCKET, _key(folder)))


def _key(location: str) -> str:
    return location.removeprefix(f"s3a://{BUCKET}/").rstrip("/") + "/"


@pytest.fixture(scope="module")
def tables(spark, running_store, metastore_service):
    with thrift_client(metastore_service) as client:
        create_database(client, DATABASE, f"s3a://{BUCKET}/warehouse/faults.db")
        for sql in SOURCES:
            spark.sql(sql)
        yield Tables(client, f"s3a://{BUCKET}/copies", Objects(running_store))


def once(at: int, fault: Fault):
    """At the request, or for a key that has gone at the next request that reads one."""
    left = [fault]

    def disturb(request: Request) -> Fault | None:
        reads = request.kind in (Kind.GET, Kind.HEAD)
        if request.number < at or not left or (fault is Fault.GONE and not reads):
            return None
        return left.pop()

    return disturb


def always(at: int, fault: Fault):
    return lambda request: fault if request.number >= at else None


@pytest.fixture
def read(spark, store, tmp_path):
    """Runs the query under a fault; its descriptor is on a local disk, because fsspec has its own
    patience."""

    def run(fault=no_fault, is_late=None) -> Outcome:
        for name in ("sales", "days"):
            spark.sql(f"REFRESH TABLE {DATABASE}.{name}")
        store.forget()
        store.fault, store.is_late = fault, is_late
        job = Job(QUERY, str(tmp_path / "1.json"), show_rows=100)
        outcome = run_job(spark.newSession(), job)
        store.fault = no_fault
        return outcome

    return run


def said_clearly(outcome: Outcome) -> None:
    """In one line, or in the few of Spark's own message, without a stack trace."""
    lines = outcome.message.strip().splitlines()
    assert 0 < len(lines) <= 3, outcome.message
    assert not any(line.lstrip().startswith(("at ", "Caused by")) for line in lines)


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CUT, Fault.LOST])
def test_a_read_that_fails_once(store, tables, read, fault):
    """S3A asks again."""
    assert read().status is Status.DONE
    for at in range(1, len(store.log) + 1, 4):
        outcome = read(once(at, fault))
        assert outcome.status is Status.DONE, outcome.message
        assert sorted(outcome.rows) == ROWS
        assert outcome.summary["kept"] == 2


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CUT])
def test_a_read_from_a_store_that_is_down(store, tables, read, fault):
    assert read().status is Status.DONE
    asked = len(store.log)
    for at in {1, asked // 3, 2 * asked // 3, asked}:
        outcome = read(always(at, fault))
        assert outcome.status is Status.FAILED
        said_clearly(outcome)
    assert sorted(read().rows) == ROWS


@pytest.mark.parametrize("table", ["sales", "days"])
def test_a_key_that_vanishes_between_listing_and_reading(store, tables, read, table):
    """Of the big table, it is an error, as in plain Spark. Of the small one, too."""
    place = f"warehouse/faults.db/{table}/"

    def gone(request: Request) -> Fault | None:
        is_file = request.key.startswith(place) and request.key.endswith(".parquet")
        return Fault.GONE if is_file and request.kind in (Kind.GET, Kind.HEAD) else None

    outcome = read(gone)
    assert outcome.status is Status.FAILED
    said_clearly(outcome)
    assert table in outcome.message


def test_a_listing_that_is_late(spark, store, tables, read):
    """Plain Spark does not see the rows either: S3 itself has lists that are never late."""
    days = "warehouse/faults.db/sales/ds=d0/"

    def is_late(key: str) -> bool:
        return key.startswith(days) and not key.endswith("/")

    outcome = read(is_late=is_late)
    assert outcome.status is Status.DONE
    store.is_late = is_late
    spark.sql(f"REFRESH TABLE {DATABASE}.sales")
    plain = sorted(tuple(map(str, row)) for row in spark.newSession().sql(QUERY).collect())
    assert sorted(outcome.rows) == plain
    assert {day for _, day in plain} == {"d1"}


# How a write is disturbed: at one request, or from it on.
DISTURBED = {
    "slow down once": (once, Fault.SLOW_DOWN),
    "cut once": (once, Fault.CUT),
    "lost once": (once, Fault.LOST),
    "gone once": (once, Fault.GONE),
    "down": (always, Fault.SLOW_DOWN),
}
POINTS = int(os.environ.get("S3_FAULTS", "4"))


@pytest.mark.parametrize("how", DISTURBED)
@pytest.mark.parametrize("name", slow_but(WRITES, "overwrite static hive", "into static spark"))
def test_a_write(spark, store, tables, tmp_path, name, how):
    """At some of its requests, or at every one with S3_FAULTS=1000."""
    kind = WRITES[name]
    when, fault = DISTURBED[how]

    def run(table: str) -> Outcome:
        sql = kind.sql.format(t=f"{DATABASE}.{table}")
        return run_job(spark.newSession(), Job(sql, str(tmp_path / "1.json")))

    table = tables.copy(kind.template)
    before = tables.state(table)
    store.forget()
    assert run(table).status is Status.DONE
    asked = len(store.log)
    complete = tables.state(table)
    tables.drop(table)
    ended = Counter()
    for point in range(min(POINTS, asked)):
        at = 1 + point * asked // min(POINTS, asked) + asked // (2 * POINTS)
        table = tables.copy(kind.template)
        store.forget()
        store.fault = when(at, fault)
        outcome = run(table)
        store.forget()
        after = tables.state(table)
        ended[outcome.status] += 1
        told = f"request {at} of {asked}: {outcome.status} {outcome.message}: {after}"
        if outcome.status is Status.DONE:
            assert after == complete, told
        else:
            said_clearly(outcome)
            assert not_doubled(name, before, after, complete), told
            if "overwrite" in name:
                assert run(table).status is Status.DONE
                assert tables.state(table) == complete, f"again after {told}"
        tables.drop(table)
    print(f"{name}, {how}: {dict(ended)} of {asked} requests")


def not_doubled(name: str, before: State, after: State, complete: State) -> bool:
    """Whether each partition has its old rows, or some of the new ones; INTO keeps the old ones."""
    if after is None or after == before:
        return after == before or before is None
    for part in {*(before or {}), *after}:
        old, new = (Counter((state or {}).get(part, ())) for state in (before, complete))
        now = Counter(after.get(part, ()))
        if name.startswith("into"):
            if not old <= now <= new:
                return False
        elif now != old and not now <= new:
            return False
    return True


@pytest.mark.parametrize("copied", [0, 1])
def test_the_new_files_cannot_be_copied_to_their_place(spark, store, tables, tmp_path, copied):
    """Some files are there; the message says where the others are, and another run writes all."""
    table = tables.copy("hive")
    job = Job(OVERWRITE.format(t=f"{DATABASE}.{table}"), str(tmp_path / "1.json"))
    copies = set()

    def fail(request: Request) -> Fault | None:
        if request.kind is not Kind.COPY or not request.key.startswith(f"copies/{table}/a=x/"):
            return None
        if len(copies) < copied:
            copies.add(request.key)
        return None if request.key in copies else Fault.SLOW_DOWN

    store.fault = fail
    outcome = run_job(spark.newSession(), job)
    store.forget()
    assert outcome.status is Status.FAILED
    said_clearly(outcome)
    assert "b=1 is incomplete" in outcome.message
    assert ".hive-opt-staging" in outcome.message
    after = tables.state(table)
    assert not_doubled("overwrite", BEFORE, after, WHOLE)
    assert len(after.get("x/1", ())) == 2 * copied
    assert run_job(spark.newSession(), job).status is Status.DONE
    assert tables.state(table) == WHOLE


OVERWRITE = (
    "INSERT OVERWRITE TABLE {t} PARTITION (a = 'x', b = 1) "
    f"SELECT /*+ REPARTITION(3) */ s.item FROM {JOIN}"
)
BEFORE = {"x/1": (100,), "x/2": (101,), "y/1": (102,)}
WHOLE = {**BEFORE, "x/1": (0, 0, 1, 1, 2, 2)}


@pytest.mark.faults
@pytest.mark.parametrize("victim", ["task", "jvm"])
@pytest.mark.parametrize("copied", [1, 2, 3])
def test_killed_while_the_partition_is_exchanged(store, tables, settings, tmp_path, victim, copied):
    """The old rows are gone and a part of the new ones is there; the next attempt writes all."""
    table = tables.copy("hive")
    held, go, numbers = threading.Event(), threading.Event(), count(1)

    def hold(request: Request) -> Fault | None:
        """The copies from that number on never reach the server."""
        if request.kind is not Kind.COPY or not request.key.startswith(f"copies/{table}/a=x/"):
            return None
        if next(numbers) < copied:
            return None
        held.set()
        go.wait(120)
        return Fault.CUT

    store.fault = hold
    process = start(settings, tmp_path, table, 1)
    assert held.wait(120), (tmp_path / "1.log").read_text()[-2000:]
    (jvm,) = (
        found
        for found in psutil.Process(process.pid).children(recursive=True)
        if found.name() == "java"
    )
    os.kill(process.pid if victim == "task" else jvm.pid, signal.SIGKILL)
    go.set()
    process.wait(60)
    jvm.wait(60)
    store.forget()
    after = tables.state(table)
    print(f"killed {victim} at copy {copied}: {after}")
    assert {**after, "x/1": ()} == {**BEFORE, "x/1": ()}
    assert len(after.get("x/1", ())) == 2 * (copied - 1)
    assert Counter(after.get("x/1", ())) < Counter(WHOLE["x/1"])
    assert process.returncode != STATUSES.index(Status.DONE)
    assert STATUSES[start(settings, tmp_path, table, 2).wait(120)] is Status.DONE
    assert tables.state(table) == WHOLE


def start(settings, folder, table: str, number: int) -> subprocess.Popen:
    path = UPath(folder / f"{number}.json")
    sql = OVERWRITE.format(t=f"{DATABASE}.{table}")
    at = write_job(Job(sql, str(path), Stages.BOTH), path)
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.faults.one_run", str(at)),
            *(f"{name}={value}" for name, value in settings.items()),
        ],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.DEVNULL,
        stderr=(folder / f"{number}.log").open("w"),
    )
