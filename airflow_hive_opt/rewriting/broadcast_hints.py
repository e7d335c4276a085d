"""Adds broadcast hints where Hive's size settings allow larger map joins than Spark's threshold.

    >>> from airflow_hive_opt.rewriting.example import CATALOG
    >>> settings = Settings.of({MAP_JOIN_SIZE: 20_000_000})
    >>> print(with_broadcasts('''SELECT i.kind FROM sales s JOIN items i ON i.item = s.item''',
    ...     CATALOG, settings, threshold=1_000_000))
    SELECT /*+ BROADCAST(`i`) */ i.kind FROM sales s JOIN items i ON i.item = s.item

As in Hive, the small tables of a block together must be within the size, the largest table is the
big table, and a table on the preserved side of an outer join can't be a small table. A SELECT with
hints of its own is not changed.

Source: "Hive Joins", map join conversion by ``hive.auto.convert.join.noconditionaltask.size``.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_hive_opt.rewriting.blocks import Block, Factor, Text
from airflow_hive_opt.rewriting.cost import MAP_JOIN_SIZE
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.rewriting.whole_statement import is_run
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import Span, tree_of, why_unsupported
from airflow_hive_opt.statement.settings import Settings


def with_broadcasts(sql: str, catalog: Catalog, settings: Settings, threshold: int) -> str:
    """Adds hints for tables of more than ``threshold`` bytes that are within Hive's size.

    ``threshold`` is the size in bytes up to which Spark broadcasts without a hint. A statement
    that can't be analyzed is returned unchanged.
    """
    limit = settings.number(MAP_JOIN_SIZE)
    if limit <= threshold or not settings.is_on("hive.auto.convert.join") or why_unsupported(sql):
        return sql
    tree = tree_of(sql)
    if tree is None or not is_run(tree):
        return sql
    text, edits = Text(sql, tree, catalog), []
    for block in text.blocks():
        try:
            if names := _small(block, limit, threshold):
                at = _after_select(text, block.select)
                hint = f" /*+ BROADCAST({', '.join(map(quote, names))}) */"
                edits.append(Edit(Span(at, at), hint))
        except Refused:
            continue
    return spliced(sql, edits) if edits else sql


def _after_select(text: Text, select: exp.Select) -> int:
    """The offset after the SELECT keyword; a UNION starts where its first SELECT does."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.SetOperation) and node is node.parent.this:
        node = node.parent
    start = text.place(node).start
    after = start + len("SELECT")
    if text.sql[start:after].upper() != "SELECT":
        raise Refused(Refusal.FORM_NOT_KNOWN)
    return after


def _small(block: Block, limit: int, threshold: int) -> list[str]:
    """The aliases to broadcast."""
    if block.select.args.get("hint") or block.select.args.get("with_"):
        return []
    if not block.select.args.get("from_") or len(block.factors) < 2:
        return []
    sizes = {factor.alias: _bytes(factor) for factor in block.factors.values()}
    big = max(sizes, key=lambda alias: sizes[alias])
    small = [
        factor
        for factor in _not_preserved(list(block.factors.values()))
        if factor.alias != big and sizes[factor.alias] <= limit
    ]
    if sum(sizes[factor.alias] for factor in small) > limit:
        return []
    return [factor.alias for factor in small if sizes[factor.alias] > threshold]


def _bytes(factor: Factor) -> float:
    known = factor.table.total_bytes if factor.table is not None else None
    return float("inf") if known is None else known


def _not_preserved(factors: list[Factor]) -> list[Factor]:
    """The FROM items that are not on the preserved side of an outer join."""
    if any(factor.join == "FULL" for factor in factors):
        return []
    return [
        factor
        for at, factor in enumerate(factors)
        if factor.join != "RIGHT" and not any(each.join == "LEFT" for each in factors[at + 1 :])
    ]
