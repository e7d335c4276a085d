"""What a task knows of the times of its own runs, by which its next run decides how it goes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Optional

from airflow_hive_opt.statement.text_enum import StrEnum

_FAR_SLOWER = 2  # times as long as the quickest way
_TRIES_FAR_SLOWER = 3
_LITERAL = r"(?:'(?:[^'\\]|\\.)*'|\b\d+(?:\.\d+)?\b)"
_LITERALS = re.compile(rf"{_LITERAL}(?:\s*,\s*{_LITERAL})*")


class Way(StrEnum):
    """How a run goes: with key indexes, with keys alone, or as the statement is."""

    INDEXES = "indexes"
    KEYS = "keys"
    UNTOUCHED = "untouched"


@dataclass(frozen=True)
class IndexTrial:
    """The seconds of a task's last runs by their way, and how this run goes.

    ``statement`` is the :func:`digest` of the statement that these runs had. ``used`` is the time
    with key indexes, ``left_out`` the time with keys alone, and ``untouched`` that of the statement
    as it is; ``None`` if it is not known. ``may_be_untouched`` says that a run may try the last
    way. ``skipped_keys`` and ``skipped_indexes`` are the job's of a run without indexes.
    ``compares`` is 0, or from 1 to 4 if this run tries one of the two other ways; from 3 also one
    that took far longer. ``counts`` says that this run's time can be compared.
    """

    statement: str = ""
    used: Optional[float] = None
    left_out: Optional[float] = None
    untouched: Optional[float] = None
    may_be_untouched: bool = False
    skipped_keys: Mapping[str, int] = field(default_factory=dict)
    skipped_indexes: Mapping[str, int] = field(default_factory=dict)
    compares: int = 0
    counts: bool = True

    @property
    def seconds(self) -> dict[Way, float | None]:
        """The times by way."""
        return {Way.INDEXES: self.used, Way.KEYS: self.left_out, Way.UNTOUCHED: self.untouched}

    @property
    def way(self) -> Way:
        """How this run goes: the quickest way, or another one to compare.

        >>> times = {}, {"used": 8, "left_out": 9}, {"used": 8, "left_out": 6, "untouched": 5}
        >>> [IndexTrial(**known).way.value for known in times]
        ['indexes', 'indexes', 'untouched']

        A run does not compare before the time with indexes is known, and rarely with a way that
        took far longer.

        >>> IndexTrial(compares=3).way.value
        'indexes'
        >>> [IndexTrial(used=8, left_out=60, compares=number).way.value for number in (1, 3)]
        ['indexes', 'keys']
        """
        if self.used is None:
            return Way.INDEXES
        known = {way: took for way, took in self.seconds.items() if took is not None}
        quickest = min(known, key=lambda way: known[way])
        limit = known[quickest] * _FAR_SLOWER
        others = [way for way in Way if way != quickest and self._may_try(way, limit)]
        return others[self.compares % len(others)] if self.compares and others else quickest

    def with_seconds(self, way: Way, seconds: float) -> IndexTrial:
        """With the time of a run that went this way."""
        if way is Way.INDEXES:
            return replace(self, used=seconds)
        if way is Way.KEYS:
            return replace(self, left_out=seconds)
        return replace(self, untouched=seconds)

    def _may_try(self, way: Way, limit: float) -> bool:
        if way is Way.UNTOUCHED and not self.may_be_untouched:
            return False
        took = self.seconds[way]
        return took is None or took <= limit or self.compares >= _TRIES_FAR_SLOWER


def digest(statement: str) -> str:
    r"""A digest of the statement without its literals, which may be others in each run of a task.

    >>> days = "SELECT * FROM t WHERE d = '2026-01-01'", "SELECT * FROM t WHERE d = '2026-01-02'"
    >>> len(set(map(digest, days))), len(set(map(digest, ("SELECT a", "SELECT b"))))
    (1, 2)
    >>> digest("a IN (1, 2.5, 'it\\'s')") == digest("a IN (7)")
    True
    """
    return hashlib.sha256(_LITERALS.sub("?", statement).encode()).hexdigest()[:16]
