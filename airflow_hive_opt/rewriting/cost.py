"""Estimates the gain of a rewriting from table sizes and statistics.

If ``hive.optimize.correlation`` is ``true``, a statement is rewritten wherever the rows stay the
same. If it is ``auto``, a gain of 10 % must also be expected. The rule is based on the measurements
of ``benchmarks/correlation.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.settings import CORRELATION, Settings

MAP_JOIN_SIZE = "hive.auto.convert.join.noconditionaltask.size"
# The assumed share of a table's rows that fulfil a condition, if nothing is known of the values.
_EQUALITY, _OTHER = 0.1, 0.5
# In bytes. Spark assumes 2**63 - 1 for a table of unknown size, and the product for a join.
_NOT_KNOWN = 2**60
# The assumed size of a row of an aggregate: a key and a value.
_GROUP_BYTES = 32
# The cost of shuffling and sorting a row with all its columns for a window, relative to a row of
# a join.
_WINDOW = 1.5
# The largest share of a key table's rows for which windows are faster than an aggregate that is
# shuffled with its rows, and than an aggregate that is broadcast.
_FEW_KEYS, _VERY_FEW_KEYS = 0.35, 0.05
# The largest size of the table that supplies a key set, relative to the table that it restricts.
_KEY_SET_SHARE = 1 / 3


@dataclass(frozen=True)
class Cost:
    """The cost rule under the given settings."""

    settings: Settings

    @property
    def asked(self) -> bool:
        """Whether to rewrite even if no gain is expected."""
        return self.settings.values[CORRELATION] == "true"

    def require_large(self, table: Table) -> None:
        """Raises :class:`Refused` if the table may be small enough to broadcast.

        Its joins then have no shuffle that a rewriting could avoid. Also raises it if the size is
        not known. Does nothing if no gain is required.
        """
        if self.asked:
            return
        if table.total_bytes is None or table.total_bytes >= _NOT_KNOWN:
            raise Refused(Refusal.SIZE_NOT_KNOWN)
        if self.is_small(table):
            raise Refused(Refusal.TABLE_SMALL)

    def require(self, gain: bool) -> None:
        """Raises :class:`Refused` if no gain is expected, but one is required."""
        if not (gain or self.asked):
            raise Refused(Refusal.NOT_EXPECTED_TO_WIN)

    def is_small(self, table: Table) -> bool:
        """Whether Spark may broadcast the table."""
        return table.total_bytes is not None and table.total_bytes <= self.settings.number(
            MAP_JOIN_SIZE
        )

    def share(self, conditions: Iterable[exp.Expr]) -> float:
        """The estimated share of a table's rows that fulfil the conditions, by their form."""
        share = 1.0
        for condition in conditions:
            bare = condition.unnest()
            constant = isinstance(bare, exp.EQ) and any(bare.find_all(exp.Literal))
            share *= _EQUALITY if constant else _OTHER
        return share

    def sorts_less(self, windowed: float, plain: float) -> bool:
        """Whether windows over a share of a table's rows are faster than joins that sort ``plain``.

        Both arguments are shares of the table's rows.
        """
        return windowed * _WINDOW <= 0.9 * plain

    def leaves_few(self, conditions: Iterable[exp.Expr], large: bool) -> bool:
        """Whether sorting the rows of the keys that fulfil the conditions is cheap.

        The comparison is with an aggregate that is known to be ``large``, or else with one that
        Spark may broadcast.
        """
        return self.share(conditions) <= (_FEW_KEYS if large else _VERY_FEW_KEYS)

    def has_a_large_aggregate(self, table: Table, keys: Iterable[str]) -> bool:
        """Whether an aggregate by key is too large to broadcast, by the table's statistics."""
        groups = table.distinct_keys(keys)
        return groups is not None and groups * _GROUP_BYTES > self.settings.number(MAP_JOIN_SIZE)

    def restricts(self, small: Table, large: Table) -> bool:
        """Whether a second read of ``small``, for its keys, is cheap compared with ``large``."""
        if small.total_bytes is None or large.total_bytes is None:
            return False
        return small.total_bytes <= large.total_bytes * _KEY_SET_SHARE
