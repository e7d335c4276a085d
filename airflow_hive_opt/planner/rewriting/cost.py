"""What a rewriting is expected to win, from table sizes and statistics.

``hive.optimize.correlation`` is ``true`` to rewrite wherever the rows stay the same, ``auto`` to
do so only where a gain of 10 % is expected. The figures behind the rule are those of
``benchmarks/correlation.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hive_opt.planner.catalog import Table
from airflow_hive_opt.planner.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.planner.settings import CORRELATION, Settings

MAP_JOIN_SIZE = "hive.auto.convert.join.noconditionaltask.size"
# A key set pays if the table it is read from is small beside the one it restricts.
_KEY_SET_SHARE = 1 / 3


@dataclass(frozen=True)
class Cost:
    """The cost rule under the given settings."""

    settings: Settings

    @property
    def asked(self) -> bool:
        """Whether to rewrite without asking for a gain."""
        return self.settings.values[CORRELATION] == "true"

    def require_large(self, table: Table) -> None:
        """Raises :class:`Refused` where the table's joins shuffle nothing anyway."""
        if self.asked:
            return
        if table.total_bytes is None:
            raise Refused(Refusal.SIZE_NOT_KNOWN)
        if self.is_small(table):
            raise Refused(Refusal.TABLE_SMALL)

    def require(self, gain: bool) -> None:
        """Raises :class:`Refused` where no gain is expected, unless one need not be."""
        if not (gain or self.asked):
            raise Refused(Refusal.NOT_EXPECTED_TO_WIN)

    def is_small(self, table: Table) -> bool:
        """Whether Spark may broadcast the table."""
        return table.total_bytes is not None and table.total_bytes <= self.settings.number(
            MAP_JOIN_SIZE
        )

    def restricts(self, small: Table, large: Table) -> bool:
        """Whether reading ``small`` once more, for its keys, is cheap beside ``large``."""
        if small.total_bytes is None or large.total_bytes is None:
            return False
        return small.total_bytes <= large.total_bytes * _KEY_SET_SHARE
