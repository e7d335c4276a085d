"""Reads a table once if it is joined with an aggregate of itself and then aggregated.

    >>> from airflow_hive_opt.rewriting.example import rewritten
    >>> print(rewritten('''SELECT i.kind, s.item, sum(s.amount) AS total
    ... FROM items i, sales s WHERE i.item = s.item AND s.item IN
    ... (SELECT item FROM sales GROUP BY item HAVING sum(amount) > 300)
    ... GROUP BY i.kind, s.item''', apply))
    SELECT i.kind, s.item, CAST(sum(`s`.`__s0`) AS DECIMAL(25,2)) AS total
    FROM items i, (SELECT `item`, sum(`amount`) AS __s0 FROM sales
      GROUP BY `item`
      HAVING sum(amount) > 300) s WHERE i.item = s.item AND (`s`.`item` IS NOT NULL)
    GROUP BY i.kind, s.item

The block uses the table's rows only by their key and in aggregates, so the rows of one key may be
aggregated before the join: every row of a key joins the same rows of the other tables and falls
into the same groups. A sum is then the sum of the keys' sums (cast back to its original type), a
count is the sum of their counts, and min and max are those of theirs. A group has rows, so none of
these is NULL where it was not NULL before. The other read of the table, by the same key and with
the same conditions, is the same aggregate: HAVING, or a condition on the derived table's columns,
applies to it. A NULL key is a group of its own, which no join or IN matches: ``IS NOT NULL`` drops
it.

The rewriting also aggregates keys that the join then drops. So a sum must not be able to overflow,
and no computed expression may fail.

The rule refuses other uses of the table's columns, conditions on them other than the aggregate's,
aggregates over other tables' columns that count rows (they would count fewer), and outer joins.

Source: job-flow correlation of the Correlation Optimizer (HIVE-2206).
"""

from __future__ import annotations

import re

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.anchors import Anchor, find_anchor
from airflow_hive_opt.rewriting.blocks import Block
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.dropping import drop_factors
from airflow_hive_opt.rewriting.expressions import (
    NewColumns,
    aggregate_of,
    aggregates_of,
    may_fail,
    renamed,
    replaced,
    require_exact,
    same_conditions,
)
from airflow_hive_opt.rewriting.lookups import Kind, Lookup, lookups
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.edits import Edit
from airflow_hive_opt.statement.identifiers import quote

_OUTER = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}
# In digits. Spark adds ten digits to a decimal for its sum, enough for 10**10 rows.
_NEVER_OVERFLOWS = 28
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def apply(block: Block, cost: Cost) -> list[Edit] | None:
    """Returns the edits, or ``None`` if the block lacks the shape; raises :class:`Refused`."""
    if not block.select.args.get("group") or len(list(block.select.find_all(exp.Select))) < 2:
        return None
    refused: list[Refusal] = []
    for lookup in lookups(block):
        if isinstance(lookup, Refused):
            refused.append(lookup.reason)
        elif lookup.kind in (Kind.IN, Kind.DERIVED):
            try:
                return _once(block, lookup, find_anchor(block, lookup), cost)
            except Refused as error:
                refused.append(error.reason)
    if refused:
        raise Refused(refused[0])
    return None


def _once(block: Block, lookup: Lookup, anchor: Anchor, cost: Cost) -> list[Edit]:
    group = block.select.args["group"]
    plain = block.known and not any(
        value for name, value in group.args.items() if name != "expressions"
    )
    if not plain or block.select.args.get("distinct"):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if anchor.via is not None or block.shows_all:
        raise Refused(Refusal.OTHER_USES)
    if not block.inner_only:
        raise Refused(Refusal.NULL_SUPPLYING_SIDE)
    _require_no_other_query(block, lookup)
    cost.require_large(lookup.table)
    sums = NewColumns(anchor.factor.alias, block.text.fresh("__s"))
    filters = block.filters(anchor.factor.alias)
    if not same_conditions(block.text, filters, lookup.filters):
        raise Refused(Refusal.OTHER_FILTERS)
    _require_no_other_use(block, lookup, anchor, filters)
    edits = [Edit(block.text.place(each), "(1 = 1)") for each in filters]
    edits += _aggregates(block, anchor, sums)
    having = ""
    if lookup.kind is Kind.IN:
        if lookup.node is None:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        edits.append(Edit(block.text.place(lookup.node), f"({anchor.present})"))
        if lookup.value is not None:
            bare = renamed(block.text, lookup.value, _bare)
            having = f"\n  HAVING {bare}"
        return [*edits, _source(block, lookup, anchor, sums, having)]
    given = {}
    for name, value in lookup.columns:
        given[name] = (
            anchor.key(lookup.keys.index(value.name.lower()))
            if isinstance(value, exp.Column)
            else _value(lookup, value, sums)
        )
    edits.append(_source(block, lookup, anchor, sums, having))
    return drop_factors(block, {lookup.alias: (given, anchor.present)}, edits)


def _bare(column: exp.Column) -> str | None:
    return quote(column.name) if column.table else None


def _value(lookup: Lookup, node: exp.Expr, sums: NewColumns) -> str:
    text = lookup.block.text
    parts = {id(each): sums.reference(aggregate_of(text, each)) for each in aggregates_of(node)}
    return f"({replaced(text, node, parts)})"


def _source(block: Block, lookup: Lookup, anchor: Anchor, sums: NewColumns, having: str) -> Edit:
    factor = anchor.factor
    if factor.reference is None:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    keys = ", ".join(map(quote, lookup.keys))
    listed = "".join(f", {aggregate} AS {name}" for aggregate, name in sums.names.items())
    where = f" WHERE {lookup.condition}" if lookup.filters else ""
    alias = "" if factor.named else f" AS {quote(factor.alias)}"
    table = factor.reference.of(block.text.sql)
    return Edit(
        factor.reference,
        f"(SELECT {keys}{listed} FROM {table}{where}\n  GROUP BY {keys}{having}){alias}",
    )


def _require_no_other_query(block: Block, lookup: Lookup) -> None:
    """Raises :class:`Refused` if another subquery may read the table's columns."""
    for inner in block.select.find_all(exp.Select):
        if inner is block.select or inner is lookup.block.select:
            continue
        in_from = any(
            factor.select is inner
            or (factor.select and inner in factor.select.find_all(exp.Select))
            for factor in block.factors.values()
        )
        if not in_from:
            raise Refused(Refusal.OTHER_USES)


def _require_no_other_use(
    block: Block, lookup: Lookup, anchor: Anchor, filters: list[exp.Expr]
) -> None:
    """Raises :class:`Refused` if the anchor's columns have uses other than key and aggregate."""
    apart = {id(each) for each in filters}
    keys = {ColumnRef(anchor.factor.alias, key) for key in lookup.keys}
    listed = {item.alias.lower() for item in block.select.expressions if item.alias}

    def stop(node: exp.Expr) -> bool:
        return (
            id(node) in apart
            or isinstance(node, exp.AggFunc)
            or (isinstance(node, exp.Query) and node is not block.select)
        )

    for part in block.select.walk(prune=stop):
        if not isinstance(part, exp.Column) or id(part) in apart:
            continue
        if isinstance(part.parent, exp.Ordered) and not part.table and part.name.lower() in listed:
            continue
        owner = block.owner(part)
        if owner is None:
            if part.table or part.name.lower() not in listed:
                raise Refused(Refusal.FORM_NOT_KNOWN)
        elif owner.alias == anchor.factor.alias and owner not in keys:
            raise Refused(Refusal.OTHER_USES)


def _aggregates(block: Block, anchor: Anchor, sums: NewColumns) -> list[Edit]:
    """Edits that compute the block's aggregates from the aggregates by key."""
    edits: list[Edit] = []
    for item in block.select.expressions:
        changed = _edits_in(block, anchor, sums, item)
        if changed and not item.alias:
            changed = [Edit(block.text.place(item), f"{changed[0].text} AS {_name(item)}")]
        edits += changed
    for name in ("having", "order"):
        if block.select.args.get(name):
            edits += _edits_in(block, anchor, sums, block.select.args[name])
    return edits


def _edits_in(block: Block, anchor: Anchor, sums: NewColumns, node: exp.Expr) -> list[Edit]:
    found = []
    for part in node.walk(prune=lambda each: isinstance(each, (exp.AggFunc, exp.Query))):
        if isinstance(part, (exp.Window, exp.Filter)):
            raise Refused(Refusal.FORM_NOT_KNOWN)
        if isinstance(part, exp.AggFunc):
            text = _outer(block, anchor, sums, part)
            if text:
                found.append(Edit(block.text.place(part), text))
    return found


def _outer(block: Block, anchor: Anchor, sums: NewColumns, node: exp.Expr) -> str | None:
    star = isinstance(node, exp.Count) and isinstance(node.this, exp.Star)
    owners = {anchor.factor.alias} if star else block.aliases(node)
    if owners != {anchor.factor.alias}:
        if isinstance(node, (exp.Min, exp.Max)) and anchor.factor.alias not in owners:
            return None  # its value does not depend on the number of equal rows
        raise Refused(Refusal.OTHER_USES)
    require_exact(block, node)
    if node.key not in _OUTER:
        raise Refused(Refusal.OTHER_USES)
    if not star and may_fail((block, node.this)):
        raise Refused(Refusal.MAY_FAIL)
    text = f"{_OUTER[node.key]}({sums.reference(aggregate_of(block.text, node))})"
    if not isinstance(node, exp.Sum):
        return text
    ref = block.owner(node.this) if isinstance(node.this, exp.Column) else None
    type_ = block.type_of(ref) if ref is not None else None
    if type_ is None:
        raise Refused(Refusal.OTHER_USES)
    decimal = _DECIMAL.fullmatch(type_)
    if type_ == "bigint" or (decimal and int(decimal[1]) > _NEVER_OVERFLOWS):
        raise Refused(Refusal.MAY_FAIL)
    return f"CAST({text} AS DECIMAL({int(decimal[1]) + 10},{decimal[2]}))" if decimal else text


def _name(item: exp.Expr) -> str:
    """Spark's name for a column that is an aggregate without an alias."""
    if isinstance(item, exp.Count) and isinstance(item.this, exp.Star):
        return "`count(1)`"
    if isinstance(item, exp.AggFunc) and isinstance(item.this, exp.Column):
        return quote(f"{item.key}({item.this.name})")
    raise Refused(Refusal.FORM_NOT_KNOWN)
