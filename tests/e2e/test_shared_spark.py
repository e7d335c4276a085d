"""A Spark that tasks share, each task a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from airflow_hive_opt.commands.main import main
from airflow_hive_opt.spark.session.shared_folder import FOLDER_VARIABLE, SharedFolder
from tests.services.disk import fill, small_disk

pytestmark = pytest.mark.e2e
# about ten minutes for one of the two cores: what ends earlier was interrupted
SLOW = "SELECT count(*) FROM range(0, 40000000000, 1, 2) WHERE hash(id, id) % 3 = 7"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(root / "sessions"))
        created = "CREATE TABLE numbers (a INT) USING parquet"
        assert Task(root, created, "INSERT INTO numbers VALUES (1)").end()[1:] == [{"rows": []}] * 2
        yield root
        main(["session", "stop", "--force"])


class Task:
    """A task that runs statements; its lines are read one by one."""

    program = "tests.e2e.shared_task"

    def __init__(self, folder, *statements, **given):
        program = [sys.executable, "-m", self.program, str(folder / "warehouse")]
        self.log = (folder / f"task-{time.monotonic()}.log").open("w+")
        self.process = subprocess.Popen(
            [*program, json.dumps({"statements": statements, **given})],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def line(self):
        """The next line, without the one that says that the task begins to wait."""
        found = self.any_line()
        return self.any_line() if "waits" in found else found

    def any_line(self):
        text = self.process.stdout.readline()
        if not text:
            self.log.seek(0)
            raise AssertionError(self.log.read()[-3000:])
        return json.loads(text)

    def lines(self):
        found = map(json.loads, self.process.stdout)
        return [line for line in found if "waits" not in line]

    def end(self):
        found = self.lines()
        assert self.process.wait(60) == 0
        return found


@contextmanager
def running(task):
    try:
        yield task
    finally:
        task.process.kill()
        task.process.wait()


def only():
    (found,) = [each for each in SharedFolder.all() if each.is_alive()]
    return found


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_tasks_share_one_spark_but_not_views_or_settings(folder, capsys):
    first = Task(
        folder,
        "CREATE DATABASE IF NOT EXISTS other",
        "CREATE TEMPORARY VIEW mine AS SELECT 1 AS a",
        "SET spark.sql.session.timeZone = Asia/Tokyo",
        "USE other",
        "SELECT current_database(), (SELECT a FROM mine)",
        hold=20,
    )
    with running(first):
        java = first.line()["ready"]
        told = [first.line() for _ in range(5)]
        assert told[-1]["rows"] == [["other", 1]]
        second = Task(
            folder,
            "SELECT a FROM numbers",  # Derby alone serves one process
            "SELECT current_database()",
            "SHOW VIEWS",
            "SET spark.sql.session.timeZone",
            conf={"spark.sql.session.timeZone": "Europe/Berlin"},
        )
        ready, *told = second.end()
        assert ready["ready"] == java
        assert [line["rows"] for line in told] == [
            [[1]],
            [["default"]],
            [],
            [["spark.sql.session.timeZone", "Europe/Berlin"]],
        ]
        assert main(["session", "status"]) == 0
        assert "1 task, log " in capsys.readouterr().out
        assert main(["session", "stop"]) == 1
        assert "in use by 1 task. Wait, " in capsys.readouterr().err


def test_one_process_may_have_two_sessions_in_turn(folder):
    task = Task(folder, "CREATE TEMPORARY VIEW mine AS SELECT 1", times=2)
    first, created, second, created_again = task.end()
    assert first["ready"] == second["ready"]
    assert created == created_again == {"rows": []}


def test_eight_tasks_share_a_spark_at_once(folder):
    """None waits until another one has ended."""
    tasks = [Task(folder, "SELECT sum(id) FROM range(1000000)", hold=3) for _ in range(8)]
    ready = [task.line() for task in tasks]
    told = [task.end() for task in tasks]
    assert told == [[{"rows": [[499999500000]]}]] * 8
    (java,) = {line["ready"] for line in ready}
    memory = psutil.Process(int(java.partition("@")[0])).memory_info().rss
    assert memory < 2 << 30  # its heap has 1 GiB
    assert only().tasks() == 0


def test_stopping_a_task_cancels_only_its_own_work(folder):
    stopped, other = Task(folder, SLOW), Task(folder, SLOW)
    with running(stopped), running(other):
        stopped.line(), other.line()
        time.sleep(5)
        stopped.process.send_signal(signal.SIGTERM)
        (line,) = stopped.end()
        assert "cancelled" in line["error"].lower()
        assert line["why"] is None  # Spark is still there
        assert other.process.poll() is None
        other.process.send_signal(signal.SIGTERM)
        (line,) = other.end()
        assert "cancelled" in line["error"].lower()


def test_the_spark_jobs_of_a_killed_task_are_cancelled(folder):
    task = Task(folder, SLOW)
    with running(task):
        task.line()
        time.sleep(3)
        assert only().tasks() == 1
        task.process.kill()
        until(lambda: "its jobs are cancelled" in only().log.read_text())
    idle(folder)


def test_a_timeout_ends_work_in_the_shared_spark_at_once(folder):
    """The interrupted call of the JVM still waits for its answer, which nobody may read."""
    began = time.monotonic()
    task = Task(folder, SLOW, alarm=3)
    with running(task):
        assert task.end()[-1] == {"late": True}
    assert time.monotonic() - began < 200
    idle(folder)


class HookTask(Task):
    """A task that runs statements as Airflow's SQL operators do; Airflow logs to its output."""

    program = "tests.e2e.shared_hook_task"

    def lines(self):
        return [json.loads(line) for line in self.process.stdout if line.startswith("{")]


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        ("INSERT OVERWRITE numbers SELECT 1", "AirflowTaskTimeout"),
        ("INSERT INTO numbers SELECT 1", "AirflowFailException"),
    ],
)
def test_a_timeout_ends_a_statement_of_a_hook_at_once(folder, first, kind):
    reset = "INSERT OVERWRITE numbers SELECT 1"
    assert Task(folder, reset).end()[1:] == [{"rows": []}]
    began = time.monotonic()
    task = HookTask(folder, first, f"INSERT INTO numbers SELECT * FROM ({SLOW})", alarm=20)
    with running(task):
        (line,) = task.end()
    assert line["kind"] == kind, line
    assert time.monotonic() - began < 200
    idle(folder)
    rows = Task(folder, "SELECT count(*) FROM numbers").end()[-1]["rows"]
    assert rows == [[1 + first.startswith("INSERT INTO")]]
    assert Task(folder, reset).end()[1:] == [{"rows": []}]


def test_a_hook_says_which_statement_did_not_run_if_the_shared_spark_ends(folder):
    task = HookTask(folder, "INSERT OVERWRITE numbers SELECT 1", "SELECT 1", kills=True)
    with running(task):
        (line,) = task.end()
    assert line["kind"] == "AirflowException", line
    assert line["message"].startswith("statement 2 of 2: the Spark that the tasks of this machine")
    assert "(1 before it ran, 0 after it did not)" in line["message"]
    assert Task(folder, "SELECT a FROM numbers").end()[-1] == {"rows": [[1]]}


def test_a_timeout_ends_the_tasks_own_spark_at_once(tmp_path):
    created = "CREATE TABLE IF NOT EXISTS numbers AS SELECT 1L AS a"
    began = time.monotonic()
    task = Task(tmp_path, created, f"INSERT OVERWRITE numbers {SLOW}", own=True, alarm=20)
    with running(task):
        assert task.lines()[-1] == {"late": True}
        assert task.process.wait(100) == 0
    assert time.monotonic() - began < 200
    read = Task(tmp_path, "SELECT * FROM numbers", own=True, alarm=0)
    assert read.end()[-1] == {"rows": [[1]]}


def idle(folder):
    """Waits until Spark runs no job, then checks that it still answers."""
    until(lambda: Task(folder).end()[0]["active"] == 0)
    assert Task(folder, "SELECT 1").end()[-1] == {"rows": [[1]]}
    assert only().tasks() == 0


def test_a_killed_shared_spark_fails_its_tasks_and_is_started_again(folder):
    task = Task(folder, SLOW)
    with running(task):
        before = task.line()["ready"]
        time.sleep(2)
        os.kill(only().pid(), signal.SIGKILL)
        (line,) = task.end()
        assert line["why"].startswith("the Spark that the tasks of this machine share has ended")
    again = Task(folder, "SELECT a FROM numbers")
    ready, told = again.end()
    assert ready["ready"] != before
    assert told == {"rows": [[1]]}


def test_a_killed_jvm_fails_its_task_and_ends_the_shared_spark(folder):
    task = Task(folder, SLOW)
    with running(task):
        java = task.line()["ready"]
        time.sleep(2)
        shared = only()
        os.kill(int(java.partition("@")[0]), signal.SIGKILL)
        (line,) = task.end()
        assert str(shared.log) in line["why"]
        until(lambda: not shared.is_alive())


def test_other_settings_replace_an_idle_spark(folder):
    """Both would need the same embedded metastore."""
    first = Task(folder, "SELECT 1").end()[0]["ready"]
    other = Task(folder, "SELECT a FROM numbers", conf={"spark.driver.maxResultSize": "2g"})
    ready, told = other.end()
    assert ready["ready"] != first
    assert told == {"rows": [[1]]}
    only()


def test_starting_a_spark_removes_old_folders(folder):
    root = only().folder.parent
    for name in ("0123456789abcdef", "of-somebody-else"):
        (root / name).mkdir(mode=0o700)
        (root / name / "task-0").touch()
        os.utime(root / name / "task-0", (0, 0))
    before = only().folder
    Task(folder, "SELECT 1", bounds={"tasks": 3}).end()
    assert not (root / "0123456789abcdef").exists()
    assert (root / "of-somebody-else").exists()
    assert before.exists()


def test_a_spark_survives_the_kill_of_the_task_that_starts_it(folder):
    assert main(["session", "stop"]) == 0
    first = Task(folder, "SELECT 1")
    with running(first):
        until(lambda: any(each.is_alive() for each in SharedFolder.all()))
    second = Task(folder, "SELECT 1")
    assert second.end()[-1] == {"rows": [[1]]}
    second.log.seek(0)
    assert "starting the Spark" not in second.log.read()


def test_an_idle_shared_spark_ends(folder):
    Task(folder, "SELECT 1", bounds={"idle": 2}).end()
    shared = only()
    until(lambda: not shared.is_alive())
    assert "no task has used this Spark" in shared.log.read_text()


def test_a_task_waits_for_a_place_in_a_full_spark(folder):
    bounds = {"tasks": 1}
    first = Task(folder, "SELECT 1", bounds=bounds, hold=6)
    with running(first):
        began = first.line()["at"]
        second = Task(folder, "SELECT 2", bounds=bounds)
        ready = second.end()[0]["at"]
        first.end()
    second.log.seek(0)
    assert "the shared Spark is full" in second.log.read()
    assert ready - began > 6


def test_a_task_that_waits_for_a_place_can_be_stopped(folder):
    bounds = {"tasks": 1}
    first = Task(folder, "SELECT 1", bounds=bounds, hold=30)
    with running(first):
        first.line()
        second = Task(folder, "SELECT 2", bounds=bounds)
        with running(second):
            second.any_line()
            time.sleep(2)
            second.process.send_signal(signal.SIGTERM)
            (line,) = second.end()
    assert line["refused"] == "the task was stopped while it waited for the shared Spark"


def test_a_task_that_waits_for_the_start_of_spark_can_be_stopped(folder):
    assert main(["session", "stop", "--force"]) == 0
    first = Task(folder, "SELECT 1")
    with running(first):
        until(lambda: any(each.is_alive() for each in SharedFolder.all()))
        (starts,) = [each for each in SharedFolder.all() if each.is_alive()]
        held = starts.pid()
        os.killpg(held, signal.SIGSTOP)  # it does not get ready while the tasks wait for it
        second = Task(folder, "SELECT 2")
        with running(second):
            for task in (second, first):
                task.any_line()
                time.sleep(1)
                task.process.send_signal(signal.SIGTERM)
                (line,) = task.end()
                assert "was stopped while it waited" in line["refused"]
        os.killpg(held, signal.SIGCONT)
    assert Task(folder, "SELECT 3").end()[-1] == {"rows": [[3]]}


def test_a_full_disk_fails_the_new_task_and_keeps_the_shared_spark(folder, tmp_path, monkeypatch):
    """A small disk of its own; a task without a place on it fails, and the Spark stays."""
    assert main(["session", "stop", "--force"]) == 0  # it has the embedded metastore
    with small_disk(tmp_path / "disk", "mode=0700", in_use=True) as place:
        monkeypatch.setenv(FOLDER_VARIABLE, str(place / "sessions"))
        java = Task(folder, "SELECT 1").end()[0]["ready"]
        filler = fill(place)
        (line,) = Task(folder, "SELECT 2").end()
        assert line["kind"] == "SparkStartError"
        assert "No space left on device" in line["refused"]
        only().log.open("a").close()
        filler.unlink()
        ready, told = Task(folder, "SELECT 3").end()
        assert (ready["ready"], told) == (java, {"rows": [[3]]})
        assert main(["session", "stop", "--force"]) == 0


def test_a_wrong_setting_of_spark_is_told_in_the_error(folder):
    (line,) = Task(folder, conf={"spark.driver.memory": "much"}).end()
    log = Path(line["refused"].rpartition("Its log is ")[2])
    assert "much" in log.read_text()
    (line,) = Task(folder, conf={"spark.sql.shuffle.partitions": "many"}).end()
    assert line["kind"] == "WrongSettingError"  # Airflow does not try again
    assert "many" in line["refused"]
    assert Task(folder, "SELECT 1").end()[-1] == {"rows": [[1]]}
