"""The state of one translation: what it uses, and what it has left out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from airflow_hive_opt.worker.unanswered import NotUnderstood


@dataclass(frozen=True)
class Source:
    """A table as the translation reads it: its rows, or the names of its partitions.

    ``types`` are the Hive types of its columns by name. ``why`` says why its rows can't be read.
    """

    key: str
    types: Mapping[str, str]
    why: NotUnderstood | None = None


@dataclass(frozen=True)
class Notes:
    """The columns and functions that a part of the text uses."""

    used: list[tuple[str, str]]
    functions: list[str]


def _none_stays(_: str) -> bool:
    return False


@dataclass
class Work:
    """The state of one translation.

    - ``sql`` is the statement, whose spans the tree has.
    - ``source`` finds a table by name; it raises :class:`NotUnderstood` if there is none.
    - ``parameters`` are the values of named parameter markers.
    - ``doubtful`` are the texts of literals that Spark reads as its settings say.
    - ``left_out`` has the parts that were left out. ``dropped`` has only those that were not
      replaced by a weaker condition.
    - ``restricting`` counts the conditions that were translated.
    - ``used`` are the columns that the translated text reads, ``functions`` the functions that it
      calls, by the names in the statement.
    - ``stays`` gets a condition, and returns whether all rows that fulfil it are kept, whatever the
      other conditions say.
    """

    sql: str
    source: Callable[[str], Source]
    parameters: Mapping[str, object] = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()
    left_out: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    restricting: int = 0
    used: list[tuple[str, str]] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    stays: Callable[[str], bool] = _none_stays
    aliases: Iterator[int] = field(default_factory=itertools.count)

    def new_alias(self) -> str:
        """A name that no other relation of the text has."""
        return f"r{next(self.aliases)}"

    @contextmanager
    def attempt(self) -> Iterator[Notes]:
        """Forgets what the block used if the block raises :class:`NotUnderstood`.

        Otherwise the yielded notes have it after the block.
        """
        before = len(self.used), len(self.functions), self.restricting
        notes = Notes([], [])
        try:
            yield notes
            notes.used.extend(self.used[before[0] :])
            notes.functions.extend(self.functions[before[1] :])
        except NotUnderstood:
            del self.used[before[0] :]
            del self.functions[before[1] :]
            self.restricting = before[2]
            raise

    def note(self, notes: Notes) -> None:
        """Counts what an attempt's text uses as used, also if the attempt around it has failed."""
        self.used.extend(notes.used)
        self.functions.extend(notes.functions)

    def leave_out(self, why: NotUnderstood, weaker: bool = False) -> None:
        """Notes that a part is left out: the result may have more rows than the statement's.

        ``weaker`` says that a weaker condition stands in its place.
        """
        self.left_out.append(why.part)
        if not weaker:
            self.dropped.append(why.part)
