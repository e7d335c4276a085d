"""What a task knows of the times of its own runs, by which its next run decides how it goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Optional

from airflow_hive_opt.statement.text_enum import StrEnum

_FAR_SLOWER = 4  # times as long as the quickest way


class Way(StrEnum):
    """How a run goes: with key indexes, with keys alone, or as the statement is."""

    INDEXES = "indexes"
    KEYS = "keys"
    UNTOUCHED = "untouched"


@dataclass(frozen=True)
class IndexTrial:
    """The seconds of a task's last runs by their way, and how this run goes.

    ``used`` is the time with key indexes, ``left_out`` the time with keys alone, and ``untouched``
    that of the statement as it is; ``None`` if it is not known. ``may_be_untouched`` says that a
    run may try the last way. ``skipped_keys`` and ``skipped_indexes`` are the job's of a run
    without indexes. ``compares`` is 1 or 2 if this run tries one of the two other ways, else 0.
    ``counts`` says that this run's time can be compared.
    """

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

        >>> IndexTrial().way, IndexTrial(8, 9).way, IndexTrial(8, 6).way, IndexTrial(8, 6, 5).way
        (<Way.INDEXES: 'indexes'>, <Way.INDEXES: 'indexes'>, <Way.KEYS: 'keys'>, \
<Way.UNTOUCHED: 'untouched'>)

        A run never compares before the time with indexes is known, nor with a way that took far
        longer. Both are so here.

        >>> IndexTrial(compares=1).way, IndexTrial(8, 60, compares=1).way
        (<Way.INDEXES: 'indexes'>, <Way.INDEXES: 'indexes'>)
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
        return took is None or took <= limit
