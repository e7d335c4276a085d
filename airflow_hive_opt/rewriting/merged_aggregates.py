r"""Merges two aggregates of one table by one key, joined on that key, into one aggregate.

    >>> from airflow_hive_opt.rewriting.example import rewritten
    >>> print(rewritten('''SELECT a.item, a.total, b.most FROM
    ... (SELECT item, sum(amount) AS total FROM sales GROUP BY item) a JOIN
    ... (SELECT item, max(amount) AS most FROM sales WHERE store = 7 GROUP BY item) b
    ... ON a.item = b.item''', apply).replace(" WHERE (a", "\nWHERE (a"))
    SELECT a.item, a.total, `a`.`__m1` AS `most` FROM
    (SELECT item, sum(amount) AS total,
      max(CASE WHEN (`store` = 7) THEN `amount` END) AS __m1,
      max(CASE WHEN (`store` = 7) THEN 1 END) AS __m0 FROM sales GROUP BY item) a
    WHERE (a.item = `a`.`item`) AND (`a`.`item` IS NOT NULL AND `a`.`__m0` IS NOT NULL)

The first aggregate must be over all rows, so that its groups include those of the second, or both
must have the same conditions. The second's conditions become CASE WHEN inside its aggregates, which
ignore NULLs. The join was on the whole key: a NULL key matched nothing, and a key without a row
that passes the second's conditions had no group there. The new conditions exclude both. The rule
supports only inner joins.

Source: input correlation of the Correlation Optimizer (HIVE-2206).
"""

from __future__ import annotations

from sqlglot import exp

from airflow_hive_opt.rewriting.anchors import equal_columns
from airflow_hive_opt.rewriting.blocks import Block
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.dropping import drop_factors
from airflow_hive_opt.rewriting.expressions import (
    NewColumns,
    aggregate_of,
    aggregates_of,
    replaced,
    same_conditions,
)
from airflow_hive_opt.rewriting.lookups import Kind, Lookup, lookups
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.edits import Edit
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import Span
from airflow_hive_opt.statement.zip_strict import zip_strict


def apply(block: Block, cost: Cost) -> list[Edit] | None:
    """Returns the edits, or ``None`` if the block lacks the shape; raises :class:`Refused`."""
    grouped = [select for select in block.select.find_all(exp.Select) if select.args.get("group")]
    if not block.select.args.get("from_") or len(grouped) < 2:
        return None
    found = [each for each in lookups(block) if isinstance(each, Lookup)]
    derived = [each for each in found if each.kind is Kind.DERIVED]
    pairs = [
        (kept, gone)
        for kept in derived
        for gone in derived
        if kept is not gone and kept.table == gone.table and set(kept.keys) == set(gone.keys)
    ]
    if not pairs:
        return None
    if not block.known:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    joined = [pair for pair in pairs if _joined(block, *pair)]
    if not joined:
        raise Refused(Refusal.NO_SHARED_KEY)
    whole = [pair for pair in joined if not pair[0].filters or _same_filters(*pair)]
    if not whole:
        raise Refused(Refusal.OTHER_FILTERS)
    if block.shows_all:
        raise Refused(Refusal.SELECT_STAR)
    kept, gone = whole[0]
    cost.require_large(kept.table)
    return _merged(block, kept, gone)


def _same_filters(kept: Lookup, gone: Lookup) -> bool:
    return same_conditions(kept.block.text, kept.filters, gone.filters)


def _joined(block: Block, kept: Lookup, gone: Lookup) -> bool:
    """Whether the two are joined on all of their keys, each key with the same key."""
    classes = equal_columns(block)
    for key, ref in zip_strict(kept.keys, kept.outer):
        other = gone.outer[gone.keys.index(key)]
        if not any(ref in each and other in each for each in classes):
            return False
    return True


def _merged(block: Block, kept: Lookup, gone: Lookup) -> list[Edit]:
    text = block.text
    alias = quote(kept.alias)
    condition = "" if _same_filters(kept, gone) else gone.condition
    new = NewColumns(kept.alias, text.fresh("__m"))
    conditions = [f"{alias}.{quote(ref.name)} IS NOT NULL" for ref in kept.outer]
    if condition:
        present = new.reference(f"max(CASE WHEN {condition} THEN 1 END)")
        conditions.append(f"{present} IS NOT NULL")
    given = {}
    for name, value in gone.columns:
        if isinstance(value, exp.Column):
            ref = kept.outer[kept.keys.index(value.name.lower())]
            given[name] = f"{alias}.{quote(ref.name)}"
        else:
            parts = {
                id(each): new.reference(aggregate_of(text, each, condition))
                for each in aggregates_of(value)
            }
            whole = replaced(text, value, parts)
            given[name] = whole if id(value) in parts else f"({whole})"
    last = text.place(kept.block.select.expressions[-1]).stop
    added = "".join(
        f",\n  {aggregate} AS {name}" for aggregate, name in reversed(new.names.items())
    )
    edits = [Edit(Span(last, last), added)]
    return drop_factors(block, {gone.alias: (given, " AND ".join(conditions))}, edits)
