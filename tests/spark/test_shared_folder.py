"""The folder in which tasks find the Spark that they share; no Spark runs here."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading

import pytest

from airflow_hive_opt.spark.session.java import SparkStartError
from airflow_hive_opt.spark.session.shared_folder import (
    FOLDER_VARIABLE,
    Address,
    SharedFolder,
)
from airflow_hive_opt.spark.session.shared_settings import Bounds, of_a_session, of_the_whole

CONF = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4"}


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "sessions"))
    return tmp_path / "sessions"


def test_only_equal_settings_share(monkeypatch):
    first = SharedFolder.of(CONF, Bounds()).folder
    assert SharedFolder.of({**CONF, "spark.sql.shuffle.partitions": "9"}, Bounds()).folder == first
    other = [
        SharedFolder.of({**CONF, "spark.master": "local[1]"}, Bounds()).folder,
        SharedFolder.of({**CONF, "spark.sql.warehouse.dir": "/w"}, Bounds()).folder,
        SharedFolder.of(CONF, Bounds(tasks=1)).folder,
    ]
    monkeypatch.setenv("AWS_PROFILE", "another")
    other.append(SharedFolder.of(CONF, Bounds()).folder)
    assert len({first, *other}) == 5
    assert (of_the_whole(CONF), of_a_session(CONF)) == (
        {"spark.master": "local[2]"},
        {"spark.sql.shuffle.partitions": "4"},
    )


def test_spark_lets_a_session_change_what_a_session_gives(spark):
    """A setting of the whole Spark must not be taken for one of a session."""
    module = getattr(getattr(spark._jvm.org.apache.spark.sql.internal, "StaticSQLConf$"), "MODULE$")
    none = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.Object, 0)
    entries = [
        method.invoke(module, none)
        for method in module.getClass().getMethods()
        if method.getReturnType().getSimpleName().endswith("ConfigEntry")
    ]
    names = [str(entry.key()) for entry in entries]
    assert "spark.sql.warehouse.dir" in names
    assert of_a_session(dict.fromkeys(names, "")) == {}


def test_no_other_user_can_open_it():
    shared = SharedFolder.of(CONF, Bounds())
    shared.publish(Address(2, "secret"))
    assert shared.folder.stat().st_mode & 0o777 == 0o700
    assert (shared.folder / "address.json").stat().st_mode & 0o777 == 0o600
    shared.folder.chmod(0o755)
    with pytest.raises(SparkStartError, match="belongs to another user or others may open it"):
        SharedFolder.of(CONF, Bounds())


def test_a_folder_that_can_not_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(SparkStartError, match="the folder of the shared Spark"):
        SharedFolder.of(CONF, Bounds())


def test_places_are_bounded_and_given_back():
    shared = SharedFolder.of(CONF, Bounds())
    first, second = shared.claim(2, "a"), shared.claim(2, "b")
    assert first is not None
    assert second is not None
    assert (shared.claim(2, "c"), shared.tasks(), shared.abandoned()) == (None, 2, [])
    shared.release(first)
    assert shared.tasks() == 1
    third = shared.claim(2, "c")
    assert third is not None
    assert third.name == first.name
    shared.release(second)
    shared.release(third)
    assert (shared.tasks(), shared.abandoned()) == (0, [])


def test_a_killed_task_leaves_its_tag_once():
    shared = SharedFolder.of(CONF, Bounds())
    program = (
        "import os, sys; from pathlib import Path\n"
        "from airflow_hive_opt.spark.session.shared_folder import SharedFolder\n"
        "shared = SharedFolder(Path(sys.argv[1]))\n"
        "held, alive = shared.claim(4, 'a tag'), shared.hold()\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, shared.folder], check=False)
    assert done.returncode == -9
    assert not shared.is_alive()
    assert (shared.tasks(), shared.abandoned(), shared.abandoned()) == (0, ["a tag"], [])


def test_a_place_that_is_taken_again_keeps_the_tag_of_a_killed_task():
    shared = SharedFolder.of(CONF, Bounds())
    killed = shared.claim(1, "a")
    assert killed is not None
    killed.close()
    following = shared.claim(1, "b")
    assert following is not None
    assert (shared.abandoned(), shared.abandoned()) == (["a"], [])
    shared.release(following)


def test_a_spark_of_another_machine_is_not_killed():
    """The number of its process may be another process here."""
    shared = SharedFolder.of(CONF, Bounds())
    alive = shared.hold()
    assert alive is not None
    (shared.folder / "alive").write_text(json.dumps({"pid": os.getpid(), "machine": "another"}))
    shared.publish(Address(1, "t"))
    assert (shared.stop(), shared.kill()) == (False, False)
    (shared.folder.parent / "a file").write_text("")
    assert [found.folder for found in SharedFolder.all()] == [shared.folder]
    alive.close()


def test_a_start_that_hangs_is_ended_by_force():
    shared = SharedFolder.of(CONF, Bounds())
    program = (
        "import signal, sys, time; from pathlib import Path\n"
        "from airflow_hive_opt.spark.session.shared_folder import SharedFolder\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "alive = SharedFolder(Path(sys.argv[1])).hold()\n"
        "print('held', flush=True)\n"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(shared.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert shared.address() is None
        assert not shared.stop()
        assert process.poll() is None
        assert shared.kill()
        assert process.wait(10) == -9


def test_a_task_that_waits_for_its_turn_can_be_stopped():
    shared, stopped = SharedFolder.of(CONF, Bounds()), threading.Event()
    with shared.locked(threading.Event()):
        threading.Timer(0.3, stopped.set).start()
        why = pytest.raises(SparkStartError, match="was stopped while it waited")
        with why, shared.locked(stopped):
            raise AssertionError
        with shared.locked_at_once() as locked:
            assert not locked
    with shared.locked(stopped):
        pass


def test_an_old_folder_is_removed_and_made_again():
    shared = SharedFolder.of(CONF, Bounds())
    place = shared.claim(1, "a")
    assert place is not None
    shared.release(place)
    assert shared.stop()
    assert shared.folder.exists()
    os.utime(shared.folder / "task-0", (0, 0))
    with (shared.folder / "lock").open("r+") as waiting:
        assert shared.stop()
        assert not shared.folder.exists()
        assert not shared._is_in_place(waiting)
    assert shared.stop()
    assert SharedFolder.all() == []
    with shared.locked(threading.Event()):
        assert shared.claim(1, "b") is not None


def test_an_address_of_another_version_is_no_address():
    shared = SharedFolder.of(CONF, Bounds())
    (shared.folder / "address.json").write_text('{"pid": 1, "port": 2, "token": "t"}')
    assert shared.address() is None


def test_configuration_files_are_compared(monkeypatch, tmp_path):
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    before = SharedFolder.of(CONF, Bounds()).folder
    assert SharedFolder.of(CONF, Bounds()).folder == before
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    assert SharedFolder.of(CONF, Bounds()).folder != before


def test_checking_the_locks_is_not_counted_as_a_task_or_a_spark():
    """Several processes may ask at the same moment."""
    shared = SharedFolder.of(CONF, Bounds())
    place = shared.claim(1, "a")
    assert place is not None
    shared.release(place)
    with (shared.folder / "task-0").open() as file, (shared.folder / "alive").open("w") as alive:
        fcntl.flock(file, fcntl.LOCK_SH)
        fcntl.flock(alive, fcntl.LOCK_SH)
        assert (shared.tasks(), shared.is_alive()) == (0, False)
        releasing = threading.Timer(0.3, fcntl.flock, (alive, fcntl.LOCK_UN))
        releasing.start()
        held = shared.hold()
        assert held is not None
        held.close()


def test_one_process_is_the_spark():
    shared = SharedFolder.of(CONF, Bounds())
    assert shared.address() is None
    alive = shared.hold()
    assert alive is not None
    assert shared.is_alive()
    assert shared.hold() is None
    assert SharedFolder.all()[0].is_alive()
    alive.close()
    assert not shared.is_alive()
    address = Address(1, "t")
    shared.publish(address)
    assert shared.address() == address
    shared.publish(None)
    assert shared.address() is None
