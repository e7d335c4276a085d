"""Eliminates a join whose small table only prunes partitions.

    >>> from airflow_hive_opt.rewriting.example import without_join
    >>> print(without_join('''SELECT f.item, f.day FROM facts f JOIN days d ON f.day = d.day
    ... WHERE d.year = 2000 AND f.amount > 1''', asked="d.year = 2000"))
    SELECT f.item, f.day FROM facts f WHERE (f.amount > 1)

The local task read the small table's keys to prune partitions. If each key occurred once among the
rows that fulfil the statement's conditions, an inner join with the table neither drops nor repeats
a row of the partitions that remain. Every condition of the statement on the table must have applied
to the keys, and the statement must read nothing else of the table.

This holds for the small table as it was when the keys were read. So the rule is for a statement
that runs at once, not for one that another application runs later.

Source: HIVE-5119, where the map join uses the small tables as the local task read them. The rule is
known as join elimination.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import is_deterministic
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.pruning.subqueries import has_positions
from airflow_hive_opt.rewriting.blocks import Block, Text
from airflow_hive_opt.rewriting.dropping import drop_factors
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.edits import Edit
from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.scan_ref import ScanRef

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RedundantJoin:
    """A join with a small table whose keys, each of which occurs once, selected all partitions.

    ``scan`` is the pruned scan, ``table`` that of the small table. ``keys`` has pairs of a column
    of the small table and the partition column that equals it. ``asked`` are the statement's
    conditions that the keys fulfil, as text.
    """

    scan: ScanRef
    table: ScanRef
    keys: tuple[tuple[str, str], ...]
    asked: tuple[str, ...]


def eliminate_joins(
    text: Text, answered: Sequence[RedundantJoin], edits: list[Edit]
) -> tuple[list[Edit], tuple[RedundantJoin, ...]]:
    """``edits`` with edits that eliminate as many of the joins as possible, and these joins.

    The given ``edits`` prune the scans. No join is eliminated in a statement that may return
    different rows each time.
    """
    if not answered or not is_deterministic(text.sql) or has_positions(text.tree):
        return edits, ()
    left_out: list[RedundantJoin] = []
    for block in reversed(list(text.blocks())):  # innermost first
        try:
            joins, dropped, gone = _found(block, answered)
            if joins:
                edits = drop_factors(block, dropped, edits, gone)
                left_out += joins
        except Refused as error:
            log.debug("no join of a block is left out: %s", error)
    return edits, tuple(left_out)


def _found(
    block: Block, answered: Sequence[RedundantJoin]
) -> tuple[list[RedundantJoin], Mapping[str, tuple[Mapping[str, str], str]], list[exp.Expr]]:
    """The block's joins that can be eliminated, and the FROM items and conjuncts to remove."""
    joins: list[RedundantJoin] = []
    dropped: dict[str, tuple[Mapping[str, str], str]] = {}
    gone: list[exp.Expr] = []
    scans: set[str] = set()
    if not (block.known and block.inner_only) or block.shows_all:
        return joins, dropped, gone
    reading, mentions = block.reading, _Mentions(block)
    by_place = {
        (factor.reference.start, factor.reference.stop): alias
        for alias, factor in block.factors.items()
        if factor.reference is not None
    }
    for join in answered:
        scan, table = by_place.get(join.scan.position), by_place.get(join.table.position)
        if scan is None or table is None or scan in dropped or table in scans | dropped.keys():
            continue
        try:
            answers = _answers(block, reading.get(table, ()), join, scan, table)
            _require_unread(block, mentions, table, answers)
        except Refused as error:
            log.debug("the join with %s stays: %s", join.table.name, error)
            continue
        scans.add(scan)
        dropped[table] = ({}, "")
        gone += answers
        joins.append(join)
    return joins, dropped, gone


def _answers(
    block: Block, reading: Sequence[exp.Expr], join: RedundantJoin, scan: str, table: str
) -> list[exp.Expr]:
    """The conjuncts of ``reading`` (all of them read the table) that the keys fulfil.

    Raises :class:`Refused` if the keys do not fulfil one of them, or if the block lacks the
    equality for a key.
    """
    if not isinstance(block.text.tree, exp.Query):
        small = block.factors[table].table
        if small is None or small.location is None:
            raise Refused(Refusal.OTHER_USES)  # a view may read what the statement writes
    pairs = {
        frozenset({ColumnRef(table, key), ColumnRef(scan, column)}) for key, column in join.keys
    }
    answers, compared = [], set()
    for conjunct in reading:
        pair = frozenset(block.equated(conjunct) or ())
        if pair in pairs:
            compared.add(pair)
            answers.append(conjunct)
        elif block.aliases(conjunct) == {table}:
            if block.text.of(conjunct) not in join.asked:
                raise Refused(Refusal.OTHER_FILTERS)
            answers.append(conjunct)
    if compared != pairs:
        raise Refused(Refusal.OTHER_FILTERS)
    return answers


def _require_unread(
    block: Block, mentions: _Mentions, table: str, gone: Sequence[exp.Expr]
) -> None:
    """Raises :class:`Refused` if a name outside ``gone`` may mean a column of the table.

    An unqualified name, or a struct's name before a field, counts as the table's column wherever it
    could be one, also in subqueries.
    """
    factor, columns = block.factors[table], block.columns(table)
    if columns is None or factor.table is None:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    places = [*mentions.of[table]]
    for name in columns:
        places += mentions.first.get(name, ())
    for name in (table, factor.table.short_name.lower()):
        places += mentions.qualifier.get(name, ())
    if not {id(each) for each in gone}.issuperset(places):
        raise Refused(Refusal.OTHER_USES)


class _Mentions:
    """Where a block names columns, also in its subqueries, but not in those in FROM.

    A place is the id of the conjunct, or 0 outside the conjuncts. ``of`` has the places of columns
    that an alias of the block qualifies. The others may belong to any table: ``first`` has the
    places by the first part of their names, ``qualifier`` by each of their qualifiers.
    """

    def __init__(self, block: Block) -> None:
        self.of: dict[str, set[int]] = {alias: set() for alias in block.factors}
        self.first: dict[str, set[int]] = defaultdict(set)
        self.qualifier: dict[str, set[int]] = defaultdict(set)
        conjuncts = {id(each): each for each in block.certain}
        apart = {id(each.select) for each in block.factors.values() if each.select is not None}
        apart |= conjuncts.keys()
        self._add(0, block.select.walk(prune=lambda found: id(found) in apart), apart)
        for place, conjunct in conjuncts.items():
            self._add(place, nodes(conjunct), set())

    def _add(self, place: int, found: Iterable[exp.Expr], apart: Collection[int]) -> None:
        for node in found:
            if not isinstance(node, exp.Column) or id(node) in apart:
                continue
            *qualifiers, name = (part.name.lower() for part in node.parts)
            first = qualifiers[0] if qualifiers else name
            if qualifiers and first in self.of:
                self.of[first].add(place)
                continue
            self.first[first].add(place)
            for qualifier in qualifiers:
                self.qualifier[qualifier].add(place)
