"""What a rewriting is expected to win, from table sizes and statistics.

``hive.optimize.correlation`` is ``true`` to rewrite wherever the rows stay the same, ``auto`` to
do so only where a gain of 10 % is expected. The figures behind the rule are those of
``benchmarks/correlation.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.settings import CORRELATION, Settings

MAP_JOIN_SIZE = "hive.auto.convert.join.noconditionaltask.size"
# What is left of a table by a condition, where nothing is known of the values.
_EQUALITY, _OTHER = 0.1, 0.5
# Spark's size of a table of which it knows none is 2**63 - 1, of a join of two the product.
_NOT_KNOWN = 2**60
# A row of an aggregate: a key and a value.
_GROUP_BYTES = 32
# What shuffling and sorting a row with all its columns for windows takes beside a join's rows.
_WINDOW = 1.5
# The share of a key table's rows up to which windows win against an aggregate that is shuffled
# with its rows, and against one that is broadcast.
_FEW_KEYS, _VERY_FEW_KEYS = 0.35, 0.05
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
        if table.total_bytes is None or table.total_bytes >= _NOT_KNOWN:
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

    def share(self, conditions: Iterable[exp.Expr]) -> float:
        """What conditions leave of a table's rows, by their form."""
        share = 1.0
        for condition in conditions:
            bare = condition.unnest()
            constant = isinstance(bare, exp.EQ) and any(bare.find_all(exp.Literal))
            share *= _EQUALITY if constant else _OTHER
        return share

    def sorts_less(self, windowed: float, plain: float) -> bool:
        """Whether windows over a share of a table's rows win against joins that sort ``plain``."""
        return windowed * _WINDOW <= 0.9 * plain

    def leaves_few(self, conditions: Iterable[exp.Expr], large: bool) -> bool:
        """Whether sorting the rows of the keys that are left is cheap.

        That is, beside an aggregate that is known to be ``large``, or else may be broadcast.
        """
        return self.share(conditions) <= (_FEW_KEYS if large else _VERY_FEW_KEYS)

    def aggregates_to_much(self, table: Table, keys: Iterable[str]) -> bool:
        """Whether an aggregate by key is too large to broadcast, by the table's statistics."""
        groups = table.distinct_keys(keys)
        return groups is not None and groups * _GROUP_BYTES > self.settings.number(MAP_JOIN_SIZE)

    def restricts(self, small: Table, large: Table) -> bool:
        """Whether reading ``small`` once more, for its keys, is cheap beside ``large``."""
        if small.total_bytes is None or large.total_bytes is None:
            return False
        return small.total_bytes <= large.total_bytes * _KEY_SET_SHARE
