"""A join left out whose small table only chose partitions.

    >>> from airflow_hive_opt.planner.rewriting.example import without_join
    >>> print(without_join('''SELECT f.item, d.day FROM facts f JOIN days d ON f.day = d.day
    ... WHERE d.year = 2000 AND f.amount > 1''', asked="d.year = 2000"))
    SELECT f.item, `f`.`day` AS `day` FROM facts f WHERE (f.amount > 1)

The small table's keys were read to choose the partitions. Where each key was there once, an inner
join with the table neither drops nor repeats a row of the partitions that were chosen, so the
table need not be read again; its key is the partition column. All that the statement asks of the
table must have been asked of the keys, and no other column of it be read.

This holds for the small table as it was when the keys were read, so it is for a statement that
runs at once, not for one that another application runs later.

Source: HIVE-5119, where the map join reads the small tables as the local task left them; the rule
is known as join elimination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.planner.conditions import is_deterministic
from airflow_hive_opt.planner.identifiers import quote
from airflow_hive_opt.planner.parse import Span
from airflow_hive_opt.planner.query import ColumnRef
from airflow_hive_opt.planner.rewriting.blocks import Block, Edit, Text
from airflow_hive_opt.planner.rewriting.dropping import drop_derived, own_columns
from airflow_hive_opt.planner.rewriting.refusals import Refusal, Refused


@dataclass(frozen=True)
class AnsweredJoin:
    """A small table at ``table`` whose keys, each there once, chose all partitions of ``scan``.

    ``keys`` are pairs of a column of it and the partition column that equals it; ``asked`` the
    conditions of the statement that the keys fulfil. ``name`` is the small table's.
    """

    scan: Span
    table: Span
    name: str
    keys: tuple[tuple[str, str], ...]
    asked: tuple[str, ...]


def eliminate_joins(
    text: Text, answered: Sequence[AnsweredJoin], edits: list[Edit]
) -> tuple[list[Edit], tuple[AnsweredJoin, ...]]:
    """``edits`` and those that leave out as many of the joins as can be, and these joins.

    ``edits`` narrow the scans; nothing is left out of a statement that may give other rows each
    time.
    """
    marks = text.tree.find_all(exp.Placeholder)
    if not answered or not is_deterministic(text.sql) or any(not mark.name for mark in marks):
        return edits, ()
    left_out: list[AnsweredJoin] = []
    for block in reversed(list(text.blocks())):
        try:
            found = _Elimination(block, answered)
            if found.joins:
                edits = drop_derived(block, found.derived, edits, found.gone)
                left_out += found.joins
        except Refused:
            continue
    return edits, tuple(left_out)


class _Elimination:
    """The joins of one block that can be left out, and what goes with them."""

    def __init__(self, block: Block, answered: Sequence[AnsweredJoin]) -> None:
        self._block = block
        self.joins: list[AnsweredJoin] = []
        self.derived: dict[str, tuple[Mapping[str, str], str]] = {}
        self.gone: list[exp.Expr] = []
        if not (block.known and block.inner_only) or block.shows_all:
            return
        by_place = {factor.reference: alias for alias, factor in block.factors.items()}
        scans: set[str] = set()
        for join in answered:
            scan, table = by_place.get(join.scan), by_place.get(join.table)
            if scan is None or table is None or scan in self.derived or table in scans:
                continue
            if table in self.derived:
                continue
            try:
                self._leave_out(join, scan, table)
            except Refused:
                continue
            scans.add(scan)

    def _leave_out(self, join: AnsweredJoin, scan: str, table: str) -> None:
        block = self._block
        pairs = {(ColumnRef(table, key), ColumnRef(scan, column)) for key, column in join.keys}
        gone, compared = [], set()
        for conjunct in block.certain:
            pair = self._equality(conjunct, table)
            if pair in pairs:
                compared.add(pair)
                gone.append(conjunct)
            elif block.aliases(conjunct) == {table}:
                if block.text.of(conjunct) not in join.asked:
                    raise Refused(Refusal.OTHER_FILTERS)
                gone.append(conjunct)
        if compared != pairs:
            raise Refused(Refusal.OTHER_FILTERS)
        replaced = dict(join.keys)
        elsewhere = {id(column) for each in gone for column in each.find_all(exp.Column)}
        for column in own_columns(block, set(), {table}):
            ref = None if id(column) in elsewhere else block.owner(column)
            if ref is None or ref.alias != table:
                continue
            partition_column = replaced.get(ref.name)
            if partition_column is None or _has_grouping_sets(block):
                raise Refused(Refusal.OTHER_USES)
            if block.type_of(ref) != block.type_of(ColumnRef(scan, partition_column)):
                raise Refused(Refusal.KEY_TYPE)
        columns = {key: f"{quote(scan)}.{quote(column)}" for key, column in join.keys}
        self.derived[table] = (columns, "")
        self.gone += gone
        self.joins.append(join)

    def _equality(self, conjunct: exp.Expr, table: str) -> tuple[ColumnRef, ColumnRef] | None:
        """The two columns of ``a = b``, that of ``table`` first."""
        inner = conjunct.unnest()
        if not isinstance(inner, exp.EQ):
            return None
        sides = [inner.this.unnest(), inner.expression.unnest()]
        if not all(isinstance(side, exp.Column) for side in sides):
            return None
        left, right = (self._block.owner(side) for side in sides)
        if left is None or right is None:
            return None
        return (left, right) if left.alias == table else (right, left)


def _has_grouping_sets(block: Block) -> bool:
    """Whether rows are grouped by sets of columns, in which two names of one column differ."""
    group = block.select.args.get("group")
    return group is not None and (
        any(value for name, value in group.args.items() if name != "expressions")
        or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
    )
