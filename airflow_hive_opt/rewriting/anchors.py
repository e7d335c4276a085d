"""Finds the scan of a table that can replace a lookup, through equal columns."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.blocks import Block, Factor
from airflow_hive_opt.rewriting.lookups import Kind, Lookup
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.zip_strict import zip_strict


@dataclass(frozen=True)
class Anchor:
    """A scan of the lookup's table whose key equals the lookup's key.

    ``block`` contains the scan. It is the block around the lookup or, if ``via`` is set, a plain
    subquery with that alias in its FROM. ``keys`` are the key columns as the block around the
    lookup names them. ``not_null`` says that a join condition excludes rows whose key is NULL.
    """

    block: Block
    factor: Factor
    via: str | None
    keys: tuple[ColumnRef, ...]
    not_null: bool

    @property
    def alias(self) -> str:
        """The alias that has the scan's columns in the block around the lookup."""
        return self.via or self.factor.alias

    @property
    def identity(self) -> tuple[str | None, str]:
        """A value that is equal for two lookups with the same anchor."""
        return self.via, self.factor.alias

    def key(self, at: int) -> str:
        """The SQL text of the key column at position ``at`` in the block around the lookup."""
        return f"{quote(self.keys[at].alias)}.{quote(self.keys[at].name)}"

    @property
    def present(self) -> str:
        """A condition: no part of the key is NULL."""
        return " AND ".join(f"{self.key(at)} IS NOT NULL" for at in range(len(self.keys)))


def equal_columns(block: Block) -> list[set[ColumnRef]]:
    """Sets of columns of one type that have equal values in every row of the block."""
    classes: list[set[ColumnRef]] = []
    for conjunct in block.certain:
        pair = block.equated(conjunct)
        if pair is None or pair[0] == pair[1]:
            continue
        left, right = pair
        type_ = block.type_of(left)
        if type_ is None or type_ != block.type_of(right):
            continue
        touched = [each for each in classes if left in each or right in each]
        classes = [each for each in classes if each not in touched]
        classes.append({left, right}.union(*touched))
    return classes


def find_anchor(block: Block, lookup: Lookup) -> Anchor:
    """The lookup's anchor; raises :class:`Refused` if there is no suitable one."""
    classes = equal_columns(block)
    members = []
    for ref in lookup.outer:
        found = next((each for each in classes if ref in each), {ref})
        members.append({each for each in found if each.alias != lookup.alias})
    not_null = all(len(each) > 1 or lookup.kind is Kind.DERIVED for each in members)
    supplied = False
    for factor in block.factors.values():
        keys = []
        anchor_block, scan, via = block, factor, None
        if factor.select is not None and factor.alias != lookup.alias:
            inner = Block(block.text, factor.select)
            if not _hands_on(inner):
                continue
            scans = [each for each in inner.factors.values() if each.table == lookup.table]
            if len(scans) != 1:
                continue
            anchor_block, scan, via = inner, scans[0], factor.alias
        elif factor.table is None or factor.table != lookup.table:
            continue
        for key, refs in zip_strict(lookup.keys, members):
            wanted = ColumnRef(scan.alias, key)
            keys += [
                ref
                for ref in sorted(refs, key=str)
                if ref.alias == factor.alias
                and (anchor_block.source(ref.name) if via else ref) == wanted
            ][:1]
        if len(keys) < len(lookup.keys):
            continue
        if block.supplied_with_nulls(factor.alias):
            supplied = True
            continue
        return Anchor(anchor_block, scan, via, tuple(keys), not_null)
    raise Refused(Refusal.NULL_SUPPLYING_SIDE if supplied else Refusal.NO_SHARED_KEY)


def _hands_on(inner: Block) -> bool:
    """Whether a subquery returns the rows of a scan or an inner join without change."""
    select = inner.select
    return (
        inner.known
        and not any(
            select.args.get(name)
            for name in ("group", "having", "limit", "distinct", "order", "with_", "hint")
        )
        and not any(select.find_all(exp.AggFunc, exp.Window))
        and not inner.shows_all
        and inner.inner_only
    )
