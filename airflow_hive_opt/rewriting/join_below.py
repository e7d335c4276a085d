r"""Moves the join with a key table below the windows.

    >>> from airflow_hive_opt.rewriting.example import rewritten
    >>> from airflow_hive_opt.rewriting.self_join_window import apply
    >>> sql = rewritten('''SELECT i.kind, s.store FROM items i, sales s WHERE i.item = s.item
    ... AND i.kind = 'food' AND EXISTS (SELECT 1 FROM sales t WHERE t.item = s.item
    ... AND t.store < s.store)''', apply)
    >>> print(sql.replace("0 FROM (", "0\nFROM (").replace(" WHERE ((", "\nWHERE (("))
    SELECT `s`.__j0 AS `kind`, s.store FROM (SELECT *,
      min(`store`) OVER (PARTITION BY `item`) AS __w0
    FROM (SELECT `s`.*, `i`.`kind` AS __j0 FROM sales AS `s`, items AS `i`
      WHERE `s`.`item` = `i`.`item` AND (i.kind = 'food'))) s
    WHERE ((`s`.`item` IS NOT NULL AND (`s`.`__w0` < s.store)))

The join repeats a row of the table as often as the key table has its key, below the windows as
above them. Repeated rows do not change the minimum and the maximum of a group. All rows of a key
join the same rows of the key table, so a group stays complete or disappears.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.blocks import Block
from airflow_hive_opt.rewriting.refusals import Refused
from airflow_hive_opt.rewriting.windowed_read import KeyTable, Windowed
from airflow_hive_opt.statement.identifiers import quote


def may_join_below(
    block: Block,
    found: list[Windowed],
    windowed: Windowed,
    keys: KeyTable,
    dropped: Collection[str],
) -> bool:
    """Whether the join with the key table may be below the windows, and only there."""
    alias = keys.factor.alias
    windows = windowed.windows.names
    if windowed.anchor.via is not None or not windows or not block.inner_only:
        return False
    if block.select.args.get("hint"):
        return False  # it may name the table that would be removed
    if alias in dropped or any(alias == each.anchor.alias for each in found):
        return False
    compared = [
        block.aliases(lookup.comparison.with_)
        for each in found
        for lookup, _ in each.lookups
        if lookup.comparison is not None
    ]
    repeatable = all(window.startswith(("min(", "max(")) for window in windows)
    return repeatable and {alias} not in compared


def joined_below(
    block: Block, windowed: Windowed, keys: KeyTable
) -> tuple[Mapping[str, str], list[exp.Expr]]:
    """The texts for the key table's columns, and the conjuncts that move below the windows."""
    alias, prefix = keys.factor.alias, block.text.fresh("__j")
    names = {keys.column: windowed.anchor.key(0)}
    windowed.handed = {}
    for part in block.select.find_all(exp.Column):
        ref = _owner(block, part)
        if ref is not None and ref.alias == alias and ref.name not in names:
            windowed.handed[ref.name] = f"{prefix}{len(windowed.handed)}"
            names[ref.name] = f"{quote(windowed.anchor.alias)}.{windowed.handed[ref.name]}"
    equal = {windowed.anchor.keys[0], ColumnRef(alias, keys.column)}
    joining = [
        each
        for each in block.certain
        if isinstance(each.unnest(), exp.EQ)
        and all(isinstance(side.unnest(), exp.Column) for side in each.unnest().iter_expressions())
        and block.owners(each) == equal
    ]
    return names, [*keys.conditions, *joining]


def _owner(block: Block, part: exp.Expr) -> ColumnRef | None:
    try:
        return block.owner(part) if isinstance(part, exp.Column) else None
    except Refused:  # a column of another query, which dropping.py checks
        return None
