"""Which rows the windowed read of a table needs: those of few keys, and of those not all.

- Rows that neither the block nor any lookup asks for are left out: what the block asks of the
  read, or else what a lookup asks. A partitioned table's conditions still choose its partitions.
- Where a smaller table with conditions of its own is joined by the key, rows of other keys could
  not pass that join. The groups of the keys that are left stay whole. The smaller table is read
  once more, for its keys; or, if all windows are of ``min`` and ``max``, which do not mind that a
  row is there several times, the join with it is made below the windows and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.anchors import Anchor, equal_columns
from airflow_hive_opt.rewriting.blocks import Block, Factor, Text, spliced
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.expressions import may_fail, renamed, require_known
from airflow_hive_opt.rewriting.lookups import Lookup
from airflow_hive_opt.rewriting.refusals import Refused
from airflow_hive_opt.statement.identifiers import quote


@dataclass
class Windowed:
    """One anchor with the windows that its lookups need, and where those are read.

    ``handed`` are columns of the key table, by their new names, where its join is made below.
    """

    anchor: Anchor
    lookups: list[tuple[Lookup, Anchor]] = field(default_factory=list)
    windows: dict[str, str] = field(default_factory=dict)
    handed: dict[str, str] | None = None

    def reference(self, window: str, prefix: str) -> str:
        """A window's value as text in the lookups' block."""
        name = self.windows.setdefault(window, f"{prefix}{len(self.windows)}")
        return f"{quote(self.anchor.alias)}.{quote(name)}"


@dataclass(frozen=True)
class KeyTable:
    """A smaller table whose ``column`` equals the scan's ``key``, and what is asked of it."""

    factor: Factor
    column: str
    key: str
    conditions: tuple[exp.Expr, ...]

    @property
    def name(self) -> str:
        """How its columns are called."""
        return quote(self.factor.alias)

    def listed(self, text: Text) -> str:
        """The table in FROM."""
        assert self.factor.reference is not None
        return f"{self.factor.reference.of(text.sql)} AS {self.name}"

    def asked(self, text: Text) -> str:
        """The conditions as text."""
        return " AND ".join(
            f"({spliced(text.sql, [], text.place(each))})" for each in self.conditions
        )


def key_table(anchor: Anchor, lookups: Sequence[Lookup], cost: Cost) -> KeyTable | None:
    """The table that says which keys the windowed read needs."""
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
    """The rows that the block or a lookup asks for, as a condition; empty if that is all rows."""
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
    return next(iter(asked)) if len(asked) == 1 else f"({' OR '.join(map(_enclosed, asked))})"


def _enclosed(condition: str) -> str:
    return f"({condition})"


def _is_key(anchor: Anchor, ref: ColumnRef) -> bool:
    if anchor.via is None:
        return ref == anchor.keys[0]
    for item in anchor.block.select.expressions:
        bare = item.unalias()
        if item.alias_or_name.lower() == anchor.keys[0].name and isinstance(bare, exp.Column):
            return anchor.block.owner(bare) == ref
    return False


def own_conditions(block: Block, factor: Factor) -> tuple[exp.Expr, ...]:
    """What the block asks of that table alone, as far as it may be asked elsewhere."""
    found = []
    for conjunct in block.certain:
        if any(conjunct.find_all(exp.Query)) or block.aliases(conjunct) != {factor.alias}:
            continue
        try:
            require_known(conjunct)
        except Refused:
            continue
        if not may_fail((block, conjunct)):
            found.append(conjunct)
    return tuple(found)
