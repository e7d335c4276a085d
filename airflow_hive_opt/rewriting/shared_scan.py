"""Shares one shuffled scan between operators that read one table by the same key.

    >>> from airflow_hive_opt.rewriting.example import rewritten
    >>> print(rewritten('''SELECT a.item, b.amount FROM
    ... (SELECT item, count(DISTINCT store) AS stores FROM sales GROUP BY item) a,
    ... (SELECT item, count(DISTINCT day) AS days FROM sales GROUP BY item) c, sales b
    ... WHERE a.item = b.item AND c.item = b.item''', apply))
    WITH __shared AS
      (SELECT `item`, `day`, `store`, `amount` FROM sales WHERE rand() IS NOT NULL
        DISTRIBUTE BY `item`)
    SELECT a.item, b.amount FROM
    (SELECT item, count(DISTINCT store) AS stores FROM __shared AS `sales` GROUP BY item) a,
    (SELECT item, count(DISTINCT day) AS days FROM __shared AS `sales` GROUP BY item) c, __shared b
    WHERE a.item = b.item AND c.item = b.item

The shared scan returns the rows of the table, so the rule is correct for all uses of them. Spark
inlines a deterministic CTE at each use. It prunes columns and pushes filters into each copy, so
that no two copies are the same. Spark does not copy a CTE that is not deterministic: this CTE reads
all columns and rows that any use needs, and its shuffle by the key serves all uses.
``rand() IS NOT NULL`` is always true; it only makes the CTE non-deterministic, and Spark's
optimizer drops it later. The CTE omits columns that the statement does not mention: if there is one
more than needed, Spark puts a projection above the shuffle, which hides the shuffle, and adds
another shuffle above that.

The rule applies only to tables whose partitions no condition prunes: the shared scan would read all
of them.

Source: input and transit correlation of the Correlation Optimizer (HIVE-2206).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.rewriting.anchors import equal_columns
from airflow_hive_opt.rewriting.blocks import Block, Factor, Text
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.edits import Edit
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import Span

# The number of times that the plain plan must shuffle the table's rows for a shared shuffle to be
# faster.
_WORTH = 2.5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Use:
    """One read of the table by ``keys``.

    ``share`` is the share of the table's rows that it uses; ``shuffles`` is the number of times
    that the plain plan shuffles them.
    """

    factor: Factor
    keys: frozenset[str]
    share: float
    shuffles: int

    @property
    def rows(self) -> float:
        """The number of shuffled rows, relative to the rows of the table."""
        return self.share * self.shuffles


def apply(block: Block, cost: Cost) -> list[Edit] | None:
    """The edits, or ``None`` if no table is read twice by one key; raises :class:`Refused`."""
    if block.select is not _outermost(block.text.tree):
        return None
    by_table: dict[str, list[_Use]] = {}
    tables: dict[str, Table] = {}
    for inner in _blocks_in_from(block):
        for factor, use in _uses(inner, cost):
            by_table.setdefault(factor.name, []).append(use)
            tables[factor.name] = factor
    refused = None
    for name, uses in by_table.items():
        table = tables[name]
        for key in sorted({key for use in uses for key in use.keys}):
            sharing = [use for use in uses if key in use.keys]
            if len(sharing) < 2:
                continue
            try:
                _require(block, table, key, sharing, cost)
            except Refused as error:
                refused = refused or error
                continue
            return _edits(block, table, key, sharing)
    if refused:
        raise refused
    return None


def _require(block: Block, table: Table, key: str, uses: list[_Use], cost: Cost) -> None:
    cost.require_large(table)
    cost.require(sum(use.rows for use in uses) >= _WORTH * min(1, sum(use.share for use in uses)))
    cost.require(_columns(block.text, table, uses) is not None)
    tree = block.text.tree
    if any(column.args.get("db") for column in tree.find_all(exp.Column)) or block.text.ctes:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if table.buckets and table.buckets.by_spark and table.buckets.columns == (key,):
        cost.require(False)  # Spark does not shuffle any read of it
    partitioned = {column.name for column in table.partition_columns}
    if any(column.name.lower() in partitioned for column in tree.find_all(exp.Column)):
        raise Refused(Refusal.PRUNING_WOULD_BE_LOST)


def _edits(block: Block, table: Table, key: str, uses: list[_Use]) -> list[Edit]:
    text = block.text
    start = text.place(block.select).start
    name = text.fresh("__shared")
    edits = []
    source = ""
    for use in uses:
        span = use.factor.reference
        if span is None:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        source = span.of(text.sql)
        alias = "" if use.factor.named else f" AS {quote(use.factor.alias)}"
        edits.append(Edit(span, f"{name}{alias}"))
    columns = _columns(text, table, uses)
    listed = "*" if columns is None else ", ".join(map(quote, columns))
    shared = (
        f"SELECT {listed} FROM {source} WHERE rand() IS NOT NULL\n    DISTRIBUTE BY {quote(key)}"
    )
    return [Edit(Span(start, start), f"WITH {name} AS\n  ({shared})\n"), *edits]


def _columns(text: Text, table: Table, uses: list[_Use]) -> tuple[str, ...] | None:
    """The table's columns that the statement may read, or ``None`` if a star may mean any.

    They are found by the words of the text, because the syntax tree represents some columns as
    functions (``current_user``) or as parts of one. A word does not count if it always follows
    the alias of another item.
    """
    aliases = {use.factor.alias for use in uses}
    if any(_shows_any(star, aliases) for star in text.tree.find_all(exp.Star)):
        return None
    words = Counter(_WORD.findall(text.sql.lower()))
    for column in text.tree.find_all(exp.Column):
        if column.table and column.table.lower() not in aliases:
            words[column.name.lower()] -= 1
    return tuple(
        column.name
        for column in table.all_columns
        if words[column.name] > 0 or not _WORD.fullmatch(column.name)
    )


def _shows_any(star: exp.Star, aliases: set[str]) -> bool:
    """Whether a star may show columns of these items."""
    if isinstance(star.parent, exp.Column):
        return star.parent.table.lower() in aliases
    if isinstance(star.parent, exp.Select) and isinstance(star.parent.parent, exp.Exists):
        return False
    return not isinstance(star.parent, exp.Count)


def _outermost(tree: exp.Expr) -> exp.Expr | None:
    query = tree if isinstance(tree, exp.Query) else tree.args.get("expression")
    return query if isinstance(query, exp.Select) else None


def _blocks_in_from(block: Block) -> list[Block]:
    """The block and, recursively, the plain subqueries in its FROM."""
    found = [block]
    for factor in block.factors.values():
        if factor.select is not None:
            found += _blocks_in_from(Block(block.text, factor.select))
    return found


def _uses(block: Block, cost: Cost) -> list[tuple[Table, _Use]]:
    """The block's reads of tables by key, each with the table."""
    found = []
    group = block.select.args.get("group")
    for factor in block.factors.values():
        if factor.table is None:
            continue
        keys: set[str] = set()
        shuffles = 0
        if len(block.factors) == 1:
            grouped = group.expressions if group else []
            bare = bool(grouped) and all(isinstance(key, exp.Column) for key in grouped)
            keys = {key.name.lower() for key in grouped} if bare else set()
            distinct = any(block.select.find_all(exp.Distinct))
            # GROUP BY aggregates rows before it shuffles them, except for DISTINCT aggregates
            shuffles = 2 if bare and distinct else 0
        elif not cost.is_small(factor.table):
            for members in equal_columns(block):
                if any(_shuffled(block, ref.alias, factor, cost) for ref in members):
                    keys |= {ref.name for ref in members if ref.alias == factor.alias}
            shuffles = 1
        if keys:
            share = cost.share(block.filters(factor.alias))
            found.append((factor.table, _Use(factor, frozenset(keys), share, shuffles)))
    return found


def _shuffled(block: Block, alias: str, factor: Factor, cost: Cost) -> bool:
    """Whether a join with the item ``alias`` shuffles the factor's rows."""
    other = block.factors[alias]
    return alias != factor.alias and (other.table is None or not cost.is_small(other.table))
