"""One round: a task, a victim that ends at a phase, and what the table has at the end."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from random import Random
from signal import SIGKILL, SIGTERM, Signals
from threading import Event, RLock
from urllib.error import URLError

import psutil

from tests.faults.tables import State
from tests.kills.airflow_task import ENDS
from tests.kills.cluster_task import ClusterTask
from tests.kills.connect_task import ConnectTask
from tests.kills.matrix import Case
from tests.services.airflow import Airflow, wait_for

_SIGNALS = {"KILL": SIGKILL, "TERM": SIGTERM}
_PHASE, _END, _ORPHAN = 600.0, 900.0, 10.0  # seconds; the first two are for a busy machine
_WITH_A_PROCESS = ("task", "worker")
_CLEARS = 2  # of a task that failed without a retry, and whose rows are not there


@dataclass
class Result:
    """What a round has shown.

    - ``late`` says that the phase was over, see :func:`next_phase`, before the victim ended, or one
      of several. ``hit`` are the others of several. ``is_done`` says that the task has succeeded.
    - ``wrote`` counts the jobs of Spark whose files were seen in the partition. ``is_wrong`` says
      that ``table`` is not what it must be, ``is_twice`` that it has two writes.
    - ``slots`` are those that the task held while it was deferred, ``orphans`` what still ran 10 s
      after a user's kill, or 10 s after the end of the run, and ``clears`` how often a user had to
      clear the task, as the docs say. ``restarts`` counts the triggerers that ended by themselves.
    - ``error`` is why the round has no result.
    """

    case: Case
    late: bool = False
    hit: list[str] = field(default_factory=list)
    is_done: bool = False
    wrote: int = 0
    table: State = None
    is_wrong: bool = False
    is_twice: bool = False
    slots: int = 0
    orphans: list[str] = field(default_factory=list)
    clears: int = 0
    restarts: int = 0
    seconds_to_stop: float | None = None
    log: str = ""
    error: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the round has shown no fault."""
        return not (self.is_wrong or self.slots or self.orphans or self.error)


@dataclass(frozen=True)
class Shared:
    """What rounds of tasks that run at once share.

    The first that reaches its phase ends the API server, and sets ``is_ended``. ``lock`` is for
    all that may be done by one of them at a time.
    """

    airflow: Airflow
    is_ended: Event = field(default_factory=Event)
    lock: RLock = field(default_factory=RLock)

    def end_api_server(self, how: Signals) -> None:
        """Ends the API server, and starts it again as a supervisor does."""
        with self.lock:
            if self.is_ended.is_set():
                return
            self.is_ended.set()
            self.airflow.kill("airflow-api-server", how)
            self.airflow.start("airflow-api-server")
        wait_for(self._answers)  # the rounds ask it for what follows

    def _answers(self) -> bool | None:
        with suppress(URLError, OSError):
            return bool(self.airflow.ask("/api/v2/version"))
        return None


@dataclass(frozen=True)
class Round:
    """The parts of a round; ``state`` reads the table past Spark."""

    case: Case
    task: ClusterTask | ConnectTask
    shared: Shared
    state: Callable[[], State]

    def run(self, chance: Random, before: State, whole: State) -> Result:
        """Runs it; ``before`` and ``whole`` are the table without and with one write."""
        task, case, result = self.task, self.case, Result(self.case)
        old: set[str] = set()
        for phase in case.phases:
            result.late = False
            try:
                process = self._reach(result, chance, phase)
                old = set(task.running() if case.victim == "user" else ())
                self._end_victim(process)
            except psutil.NoSuchProcess:
                result.late = True
            finally:
                task.go_on()
            result.hit += [] if result.late else [phase]
        if len(case.phases) == 1:
            result.hit = []
        else:
            result.late = len(result.hit) < len(case.phases)
        if case.victim == "user":
            self._watch_orphans(result, old)
        self._wait(result, whole)
        if not task.until(lambda: not task.running(), _ORPHAN):
            result.orphans = list({*result.orphans, *task.running()})
        found = self.state()
        result.wrote = len(task.wrote)
        twice = _with_another(before, whole) if case.verb == "INTO" else whole
        allowed: Iterable[State] = (whole,)
        if (case.victim, case.signal) == ("user", "FAILED"):
            allowed = (before, whole)
        elif case.victim == "user":  # who asks to run it again
            allowed = (whole, twice)
        result.table, result.is_wrong = found, found not in allowed
        result.is_twice = found == twice != whole
        result.log = "\n".join(task.log(number) for number in range(1, 9))
        return result

    def _reach(self, result: Result, chance: Random, phase: str) -> psutil.Process | None:
        """Waits for the phase; returns the process of the task, if that is to end."""
        task, phases = self.task, self.task.phases()
        names, after = list(phases), task.deferred_after
        is_own = self.case.victim in _WITH_A_PROCESS
        is_late = phase == "ended" and after is not None  # the task has another process by then
        process = task.find_process() if is_own and not is_late else None
        is_after = after is not None and names.index(phase) > names.index(after)
        if is_after:
            self._wait_until_deferred(result)
        self._wait_until_shown(task.resumes if is_own and is_late else phases[phase], phase, chance)
        if self.shared.is_ended.is_set():  # by another round: this one is that of its phase now
            result.case = replace(self.case, phase=_phase_of(phases))
            return None
        if is_own and process is None:
            process = task.find_process()
        if phase == "commits" and not self._holds(phase):
            time.sleep(chance.uniform(0, task.seconds_to_commit))  # no file shows a moment of it
        following = next_phase(names, phase, is_own)
        with suppress(URLError, OSError):  # another round ends a server
            result.late = bool(following and phases[following]())
        if is_after and self.case.victim == "triggerer" and task.state() != "deferred":
            result.late = True
        return process

    def _holds(self, phase: str) -> bool:
        """Whether the server is held at this phase, because its commit is short."""
        ends_at_it = self.case.victim in (*_WITH_A_PROCESS, "triggerer")
        return phase == "commits" and self.case.kind != "cluster" and ends_at_it

    def _wait_until_deferred(self, result: Result) -> None:
        """Waits until the task is deferred, and counts the slots that it holds then."""
        task = self.task

        def is_deferred() -> bool:
            if self.shared.is_ended.is_set():
                return True
            state = task.state()
            if state != "deferred":
                return state in ENDS
            result.slots = max(result.slots, task.slots())
            return task.is_followed() or self.case.victim != "triggerer"

        assert task.until(is_deferred, _PHASE, task.pause), task.log()

    def _wait_until_shown(self, shows: Callable[[], object], phase: str, chance: Random) -> None:
        """Waits until the phase shows, or until another round has ended the API server.

        At a moment of a commit that is short, the server is held.
        """
        task, is_ended, is_held = self.task, self.shared.is_ended, self._holds(phase)

        def is_reached() -> bool:
            if is_held and not is_ended.is_set():
                if not task.has_written():
                    return False
                time.sleep(chance.uniform(0, task.seconds_to_commit / 2))
                task.hold()
            if is_ended.is_set() or shows():
                return True
            task.go_on()
            return False

        assert task.until(is_reached, _PHASE, task.pause), task.log()

    def _watch_orphans(self, result: Result, old: set[str]) -> None:
        """Looks for 10 s what still runs, or begins to; ``old`` is what ran before the kill.

        A cleared task begins again, so that only what is old must end.
        """
        began = last = time.monotonic()
        left: list[str] = []

        def look() -> bool:
            nonlocal last, left
            left = [
                found
                for found in self.task.running()
                if found in old or self.case.signal == "FAILED"
            ]
            last = time.monotonic() if left else last
            return False

        self.task.until(look, _ORPHAN, self.task.pause)
        result.seconds_to_stop, result.orphans = last - began, left

    def _end_victim(self, process: psutil.Process | None) -> None:
        """Ends the victim, and starts again what a supervisor would."""
        task, how, victim = self.task, self.case.signal, self.case.victim
        if victim == "user":
            task.fail_by_user() if how == "FAILED" else task.clear_by_user()
            return
        signal: Signals = _SIGNALS[how]
        if process is not None:
            task.end_process(process, signal, with_supervisor=victim == "worker")
        elif victim == "driver" and isinstance(task, ClusterTask):
            task.end_driver(signal)
        elif victim == "connect-server" and isinstance(task, ConnectTask):
            task.end_server(signal)
        elif victim == "triggerer":
            task.end_triggerer(signal)
        elif victim == "api-server":
            self.shared.end_api_server(signal)
        else:
            raise ValueError(victim)

    def _wait(self, result: Result, whole: State) -> None:
        """Waits for the end; clears a failed task as a user who misses its rows in the table."""
        task = self.task

        def has_ended() -> bool:
            # Airflow's triggerer may end when one of its tasks is cleared.
            result.restarts += task.start_triggerer()
            return task.run_state() in ENDS

        while True:
            assert task.until(has_ended, _END), task.log()
            result.is_done = task.run_state() == "success"
            stays = self.case.victim == "user" and self.case.signal == "FAILED"
            if result.is_done or stays or result.clears == _CLEARS:
                return
            task.until(lambda: not task.running(), _PHASE)  # the user has to make sure of it
            if self.state() == whole:
                return
            result.clears += 1
            if folder := task.left_files():
                shutil.rmtree(folder)
            task.clear_by_user()
            task.until(lambda: task.run_state() not in ENDS, 30)


def next_phase(names: Sequence[str], phase: str, is_own: bool) -> str | None:
    """The phase of ``names`` that ends ``phase``.

    A statement still runs while its task waits. Only the task's own process has gone then, which is
    the victim if ``is_own``.
    """
    following = names[names.index(phase) + 1 :]
    if phase == "runs" and not is_own:
        following = [name for name in following if name != "waits"]
    return following[0] if following else None


def _phase_of(phases: Mapping[str, Callable[[], object]]) -> str:
    """The phase of a task whose server has just ended; ``queued`` if it has none yet."""
    for name, shows in reversed(phases.items()):
        with suppress(URLError, OSError):  # the server is the one that tells
            if shows():
                return name
    return "queued"


def _with_another(before: State, whole: State) -> State:
    """The table after a second INSERT INTO."""
    assert before is not None
    assert whole is not None
    added = {name: Counter(items) - Counter(before[name]) for name, items in whole.items()}
    return {name: tuple(sorted([*whole[name], *more.elements()])) for name, more in added.items()}


def line_of(result: Result) -> str:
    """A result as a line of JSON, without its log, and without what is as in most results."""
    found = {**asdict(result), **asdict(result.case)}
    for name in ("case", "log", "table") if not result.is_wrong else ("case", "log"):
        del found[name]
    usual = asdict(Result(result.case))
    return json.dumps({name: value for name, value in found.items() if usual.get(name) != value})


def read_line(line: str) -> Result:
    """The result of a line."""
    found = json.loads(line)
    return Result(Case(*(found.pop(each.name) for each in fields(Case))), **found)


def table_of(results: Iterable[Result]) -> list[str]:
    """The results as lines of a table: one for each case."""
    found: dict[Case, list[Result]] = {}
    for result in results:
        found.setdefault(result.case, []).append(result)
    head = (
        f"{'task':8} {'verb':10} {'victim':15} {'signal':8} {'phase':21} {'rounds':>6} {'late':>5} "
        f"{'wrote':>9} {'wrong':>6} {'slots':>5} {'orphans':>7} {'failed':>6} {'cleared':>7} "
        f"{'restarts':>8} {'errors':>6} {'to stop':>8}"
    )
    lines = [head]
    for case, rounds in found.items():
        wrote = sorted({each.wrote for each in rounds})
        slowest = max((each.seconds_to_stop or 0.0 for each in rounds), default=0.0)
        lines.append(
            f"{case.kind:8} {case.verb:10} {case.victim:15} {case.signal:8} {case.phase:21} "
            f"{len(rounds):6} {sum(each.late for each in rounds):5} "
            f"{'-'.join(map(str, wrote)):>9} "
            f"{sum(each.is_wrong for each in rounds):6} "
            f"{max(each.slots for each in rounds):5} "
            f"{sum(len(each.orphans) for each in rounds):7} "
            f"{sum(not each.is_done for each in rounds):6} "
            f"{sum(each.clears for each in rounds):7} "
            f"{sum(each.restarts for each in rounds):8} "
            f"{sum(bool(each.error) for each in rounds):6} "
            f"{f'{slowest:.1f} s' if slowest else '-':>8}"
        )
    return lines
