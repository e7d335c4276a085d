"""The cases: who ends, how, and at which phase of which kind of task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from random import Random

# In the order in which they come.
ON_CLUSTER = ("before", "submitted", "starts", "runs", "commits", "ended")
OVER_CONNECT = ("before", "begins", "runs", "commits", "ended")
DEFERRED = ("before", "begins", "runs", "waits", "commits", "ended")

SIGNALS = ("KILL", "TERM")
BY_USER = ("FAILED", "CLEARED")
"""What a user does in Airflow: the task is marked as failed, or cleared."""

# A deferred task has no process of its own until ``ended``.
_OF_WORKER = ("before", "submitted", "ended")
_OF_DEFERRED = ("before", "begins", "runs", "ended")
PHASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cluster": {
        "task": _OF_WORKER,
        "worker": (*_OF_WORKER, "before+submitted+ended"),
        "triggerer": (*ON_CLUSTER, "before+starts+commits", "submitted+runs+ended"),
        "api-server": ON_CLUSTER,
        "driver": (*ON_CLUSTER[2:], "starts+runs+ended"),
        "user": ON_CLUSTER[:-1],
    },
    "connect": {
        "task": OVER_CONNECT,
        "worker": (*OVER_CONNECT, "begins+runs+commits", "before+runs+ended"),
        "api-server": OVER_CONNECT,
        "connect-server": OVER_CONNECT,
        "user": OVER_CONNECT[:-1],
    },
    "deferred": {
        "task": _OF_DEFERRED,
        "worker": _OF_DEFERRED,
        "triggerer": (*DEFERRED, "before+waits+ended", "runs+commits"),
        "api-server": DEFERRED,
        "connect-server": (*DEFERRED, "before+begins+waits"),
        "user": DEFERRED[:-1],
    },
}
"""The phases at which a victim is there to be killed, by kind of task.

``deferred`` is a deferred task over Spark Connect. ``task`` is the task's process alone, and
``worker`` is that with the one that supervises it. A victim may end at several phases of one
task: another triggerer or the next try follows what runs, starts another driver, or begins again
on the server that was started again.
"""


@dataclass(frozen=True)
class Case:
    """One victim at one phase; ``verb`` is INTO or OVERWRITE."""

    kind: str
    verb: str
    victim: str
    signal: str
    phase: str

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases at which the victim ends, in their order."""
        return tuple(self.phase.split("+"))

    def __str__(self) -> str:
        return f"{self.kind}-{self.verb}-{self.victim}-{self.signal}-{self.phase}".lower()


NumberedCase = tuple[Case, int]
"""A case, and the number of its round."""


def tasks_at_once(variables: Mapping[str, str]) -> int:
    """How many tasks run at once, at most: AT_ONCE, or 4. Raises ``ValueError`` below 1."""
    found = int(variables.get("AT_ONCE") or 4)
    if found < 1:
        raise ValueError(f"AT_ONCE: {found} tasks can't run")
    return found


def groups(variables: Mapping[str, str]) -> Iterator[tuple[NumberedCase, ...]]:
    """The rounds of :func:`rounds` in groups, which follow each other.

    Those of the API server, which all tasks have in common, are in groups of one case but for the
    verb, and have at most AT_ONCE rounds: they run together. All others are one group, of which
    AT_ONCE run at any time.
    """
    most = tasks_at_once(variables)
    others: list[NumberedCase] = []
    together: dict[Case, list[NumberedCase]] = {}
    for case, number in rounds(variables):
        if case.victim != "api-server":
            others.append((case, number))
            continue
        found = together.setdefault(replace(case, verb=""), [])
        found.append((case, number))
        if len(found) == most:
            yield tuple(found)
            found.clear()
    yield from (tuple(found) for found in (others, *together.values()) if found)


def rounds(variables: Mapping[str, str]) -> Iterator[NumberedCase]:
    """The rounds that the variables choose, with their numbers.

    KINDS, VERBS, VICTIMS, SIGNALS and PHASES are lists of words, or ``all``. Without VERBS or
    PHASES, SEED draws one for each victim and signal of each of ROUNDS. With CASES, all of these
    but SEED have no effect: its words are cases, and how many rounds of each, such as
    ``cluster-into-driver-kill-commits*3``. Raises ``ValueError`` for a word of no case.
    """
    every = [
        Case(kind, verb, victim, signal, phase)
        for kind, victims in PHASES.items()
        for victim, phases in victims.items()
        for signal, phase, verb in product(
            BY_USER if victim == "user" else SIGNALS, phases, ("OVERWRITE", "INTO")
        )
    ]
    if words := variables.get("CASES", "").split():
        yield from _of_words(words, {str(case): case for case in every})
        return
    known = {each.name: {getattr(case, each.name) for case in every} for each in fields(Case)}
    drawn_for = ["kind", "victim", "signal"]
    for name, words in known.items():
        wanted = variables.get(f"{name.upper()}S", "").split()
        if wanted and name not in drawn_for:
            drawn_for.append(name)
        if wanted in ([], ["all"]):
            continue
        if unknown := set(wanted) - words:
            raise ValueError(f"{name.upper()}S: there is no {' '.join(sorted(unknown))}")
        every = [case for case in every if getattr(case, name) in wanted]
    alike: dict[tuple[str, ...], list[Case]] = {}
    for case in every:
        alike.setdefault(tuple(getattr(case, name) for name in drawn_for), []).append(case)
    for number in range(1, int(variables.get("ROUNDS") or 1) + 1):
        chance = Random(f"{variables.get('SEED') or 1} {number}")
        for group in alike.values():
            yield chance.choice(group), number


def _of_words(words: Iterable[str], cases: Mapping[str, Case]) -> Iterator[NumberedCase]:
    """The rounds of the words of CASES: the first of each, then the second, and so on."""
    wanted: dict[Case, int] = {}
    for word in words:
        found = re.fullmatch(r"([^*]+)(?:\*([1-9]\d*))?", word)
        case = cases.get(found[1].lower()) if found else None
        if found is None or case is None:
            raise ValueError(f"CASES: there is no {word}")
        if case in wanted:
            raise ValueError(f"CASES: {case} is there twice")
        wanted[case] = int(found[2] or 1)
    for number in range(1, max(wanted.values()) + 1):
        yield from ((case, number) for case, most in wanted.items() if number <= most)
