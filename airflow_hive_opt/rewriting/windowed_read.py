"""Restricts the windowed read of a table to the rows and keys that are needed.

- It reads only rows that fulfil the conditions of the block or those of a lookup. So the conditions
  of a partitioned table still prune its partitions.
- If a smaller table with conditions of its own is joined on the key, rows of other keys could not
  pass that join and are not read. The groups of the remaining keys stay complete. The smaller table
  is read once more, for its keys. If all windows are ``min`` or ``max``, which repeated rows do not
  change, the join with it can move below the windows instead (``join_below``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.anchors import Anchor, equal_columns
from airflow_hive_opt.rewriting.blocks import Block, Factor, Text
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.expressions import NewColumns, may_fail, renamed, require_known
from airflow_hive_opt.rewriting.lookups import Lookup
from airflow_hive_opt.rewriting.refusals import Refused
from airflow_hive_opt.statement.identifiers import quote


@dataclass
class Windowed:
    """One anchor with its lookups and the windows that they need.

    ``handed`` has the new names of the key table's columns if its join is below the windows;
    otherwise it is ``None``.
    """

    anchor: Anchor
    windows: NewColumns
    lookups: list[tuple[Lookup, Anchor]] = field(default_factory=list)
    handed: dict[str, str] | None = None


@dataclass(frozen=True)
class KeyTable:
    """A smaller table whose ``column`` equals the scan's ``key``, with its conditions."""

    factor: Factor
    column: str
    key: str
    conditions: tuple[exp.Expr, ...]

    @property
    def name(self) -> str:
        """The table's alias, quoted."""
        return quote(self.factor.alias)

    def listed(self, text: Text) -> str:
        """The table as an item of FROM."""
        assert self.factor.reference is not None
        return f"{self.factor.reference.of(text.sql)} AS {self.name}"

    def asked(self, text: Text) -> str:
        """The conditions as SQL text."""
        return " AND ".join(f"({text.of(each)})" for each in self.conditions)


def key_table(anchor: Anchor, lookups: Sequence[Lookup], cost: Cost) -> KeyTable | None:
    """The table whose rows are the keys of the windowed read; ``None`` if there is none."""
    block, table = anchor.block, anchor.factor.table
    if table is None or len(anchor.keys) != 1 or len({lookup.keys for lookup in lookups}) > 1:
        return None
    for members in equal_columns(block):
        own = [ref for ref in members if ref.alias == anchor.factor.alias]
        if len(own) != 1 or not _is_key(anchor, own[0]):
            continue
        for ref in sorted(members, key=str):
            other = block.factors[ref.alias]
            if other.table is None or other.table == table or other.reference is None:
                continue
            if block.supplied_with_nulls(ref.alias) or not cost.restricts(other.table, table):
                continue
            if conditions := own_conditions(block, other):
                return KeyTable(other, ref.name, own[0].name, conditions)
    return None


def needed(anchor: Anchor, lookups: Sequence[Lookup], prefix: str = "") -> str:
    """A condition for the rows that the block or a lookup reads; empty if that is all rows."""
    text = anchor.block.text
    users = [own_conditions(anchor.block, anchor.factor), *(each.filters for each in lookups)]
    asked = dict.fromkeys(
        " AND ".join(
            f"({renamed(text, each, lambda column: prefix + quote(column.name))})"
            for each in conditions
        )
        for conditions in users
    )
    if "" in asked:
        return ""
    either = " OR ".join(f"({condition})" for condition in asked)
    return next(iter(asked)) if len(asked) == 1 else f"({either})"


def _is_key(anchor: Anchor, ref: ColumnRef) -> bool:
    key = anchor.keys[0]
    return ref == (key if anchor.via is None else anchor.block.source(key.name))


def own_conditions(block: Block, factor: Factor) -> tuple[exp.Expr, ...]:
    """The block's conditions on that table alone that may be evaluated elsewhere."""
    found = []
    for conjunct in block.filters(factor.alias):
        try:
            require_known(conjunct)
        except Refused:
            continue
        if not may_fail((block, conjunct)):
            found.append(conjunct)
    return tuple(found)
