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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import is_deterministic
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.pruning.subqueries import has_positions
from airflow_hive_opt.rewriting.blocks import Block, Edit, Text
from airflow_hive_opt.rewriting.dropping import drop_factors
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.parse import Span

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RedundantJoin:
    """A join with a small table whose keys, each of which occurs once, chose all partitions.

    ``scan`` and ``table`` are the positions of the pruned scan and of the small table. ``name`` is
    the small table's name. ``keys`` has pairs of a column of it and the partition column that
    equals it. ``asked`` are the statement's conditions that the keys fulfil, as text.
    """

    scan: Span
    table: Span
    name: str
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
    by_place = {factor.reference: alias for alias, factor in block.factors.items()}
    for join in answered:
        scan, table = by_place.get(join.scan), by_place.get(join.table)
        if scan is None or table is None or scan in dropped or table in scans | dropped.keys():
            continue
        try:
            answers = _answers(block, join, scan, table)
            _require_unread(block, table, answers)
        except Refused as error:
            log.debug("the join with %s stays: %s", join.name, error)
            continue
        scans.add(scan)
        dropped[table] = ({}, "")
        gone += answers
        joins.append(join)
    return joins, dropped, gone


def _answers(block: Block, join: RedundantJoin, scan: str, table: str) -> list[exp.Expr]:
    """The block's conjuncts on the table, all of which the keys fulfil.

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
    for conjunct in block.certain:
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


def _require_unread(block: Block, table: str, gone: Sequence[exp.Expr]) -> None:
    """Raises :class:`Refused` if a name outside ``gone`` may mean a column of the table.

    An unqualified name, or a struct's name before a field, counts as the table's column wherever it
    could be one, also in subqueries. Subqueries in FROM are excluded: the table is not visible
    there.
    """
    factor, columns = block.factors[table], block.columns(table)
    if columns is None or factor.table is None:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    called = {table, factor.table.short_name.lower()}
    unseen = {id(each) for each in gone}
    unseen |= {id(each.select) for each in block.factors.values() if each.select is not None}
    for node in block.select.walk(prune=lambda part: id(part) in unseen):
        if not isinstance(node, exp.Column) or id(node) in unseen:
            continue
        *qualifiers, name = (part.name.lower() for part in node.parts)
        first = qualifiers[0] if qualifiers else name
        other = bool(qualifiers) and first in block.factors and first != table
        if not other and (first in columns or called.intersection(qualifiers)):
            raise Refused(Refusal.OTHER_USES)
