"""Reads a table once if it is joined with an aggregate of itself or tested against itself.

    >>> from airflow_hive_opt.rewriting.example import rewritten
    >>> print(rewritten('''SELECT sum(s.amount) FROM sales s WHERE s.amount <
    ... (SELECT avg(amount) FROM sales WHERE item = s.item)''', apply))
    SELECT sum(s.amount) FROM (SELECT *,
      avg(`amount`) OVER (PARTITION BY `item`) AS __w0 FROM sales) s WHERE s.amount <
    (CASE WHEN `s`.`item` IS NOT NULL THEN `s`.`__w0` END)

The aggregate becomes a window over the table's rows. Spark shuffles them by the key once and does
not need a join. The result is the same for every row:

- The lookup reads all rows of the table that have the current row's key and pass its own filters.
  The window is over all rows of the key, and the filters become CASE WHEN inside its aggregate. The
  block's own conditions on the row apply outside the window.
- A NULL key equals nothing, so the lookup finds no row: its value is NULL, or 0 for a count. A
  window groups NULL keys together, hence the CASE. It is omitted if a join on the key drops such
  rows.
- The lookup's filters may exclude the current row itself, so that no row is found: sum, avg, min
  and max over only NULLs are NULL, and count is 0, as in the lookup. A join with a derived
  table, and IN, need a row that passes: one more window checks that.
- ``EXISTS`` with ``b.v <> a.v`` holds if and only if the minimum or the maximum of v for the key is
  not a.v. With ``<`` or ``>``, the minimum or the maximum alone decides. min and max ignore NULLs,
  which no comparison matches. Compared with NULL they return NULL: WHERE treats it as false, and
  ``NOT coalesce(..., false)`` as true, as NOT EXISTS does.
- The number of the anchor's rows does not change. An anchor that an outer join may replace by NULLs
  is refused.

``windowed_read`` restricts the windowed read to the rows and keys that are needed.

Source: the job-flow and transit correlations of the Correlation Optimizer (HIVE-2206), in the form
that Spark can run in one stage.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from airflow_hive_opt.rewriting.anchors import Anchor, find_anchor
from airflow_hive_opt.rewriting.blocks import Block, Text
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.dropping import drop_factors
from airflow_hive_opt.rewriting.expressions import (
    NewColumns,
    aggregate_of,
    aggregates_of,
    may_fail,
    replaced,
)
from airflow_hive_opt.rewriting.join_below import joined_below, may_join_below
from airflow_hive_opt.rewriting.lookups import Comparison, Kind, Lookup, lookups
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.rewriting.windowed_read import (
    KeyTable,
    Windowed,
    key_table,
    needed,
    own_conditions,
)
from airflow_hive_opt.statement.edits import Edit
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import Span


def apply(block: Block, cost: Cost) -> list[Edit] | None:
    """Returns the edits, or ``None`` if the block has no lookup; raises :class:`Refused`."""
    if not block.select.args.get("from_") or not _may_have(block):
        return None
    refused: list[Refusal] = []
    found: dict[tuple[str | None, str], Windowed] = {}
    prefix = block.text.fresh("__w")
    for lookup in lookups(block):
        if isinstance(lookup, Refused):
            refused.append(lookup.reason)
            continue
        try:
            anchor = find_anchor(block, lookup)
            cost.require_large(lookup.table)
        except Refused as error:
            refused.append(error.reason)
            continue
        new = Windowed(anchor, NewColumns(anchor.alias, prefix))
        found.setdefault(anchor.identity, new).lookups.append((lookup, anchor))
    if not found:
        if refused:
            raise Refused(refused[0])
        return None
    if not block.known:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if block.shows_all:
        raise Refused(Refusal.SELECT_STAR)
    _require_safe(block, [lookup for each in found.values() for lookup, _ in each.lookups])
    try:
        return _edits(block, list(found.values()), cost, below=True)
    except Refused:
        return _edits(block, list(found.values()), cost, below=False)


def _edits(block: Block, found: list[Windowed], cost: Cost, below: bool) -> list[Edit]:
    """Edits that replace lookups by windows; ``below`` allows key tables below the windows."""
    edits: list[Edit] = []
    derived: dict[str, tuple[Mapping[str, str], str]] = {}
    gone: list[exp.Expr] = []
    for windowed in found:
        for lookup, anchor in windowed.lookups:
            gone.append(lookup.block.select)
            if lookup.kind is Kind.DERIVED:
                derived[lookup.alias] = _columns(lookup, anchor, windowed.windows)
            else:
                edits.append(_conjunct(lookup, anchor, windowed.windows))
    for windowed in found:
        keys = key_table(windowed.anchor, [lookup for lookup, _ in windowed.lookups], cost)
        cost.require(_wins(block, windowed, keys, cost))
        windowed.handed = None
        if keys is not None and below and may_join_below(block, found, windowed, keys, derived):
            names, moved = joined_below(block, windowed, keys)
            derived[keys.factor.alias] = (names, "")
            gone += moved
        edits += _source(block.text, windowed, keys)
    return drop_factors(block, derived, edits, gone) if derived else edits


def _may_have(block: Block) -> bool:
    """Whether there is a subquery; without one there is no lookup."""
    return any(inner is not block.select for inner in block.select.find_all(exp.Select))


def _wins(block: Block, windowed: Windowed, keys: KeyTable | None, cost: Cost) -> bool:
    """The cost rule: whether windows are expected to be faster.

    A window shuffles and sorts rows by the key. If the lookups test for rows (EXISTS), the plain
    plan does so too: for the anchor's rows, and for the rows of each lookup. An aggregate is hashed
    where the rows are read, so that little is shuffled; if its result is small, Spark broadcasts
    it. A window in its place is faster if only the rows of few keys are sorted, or if statistics
    show that the aggregate is large and no other join leaves few of the anchor's rows.
    """
    anchor = windowed.anchor
    own = cost.share(own_conditions(anchor.block, anchor.factor))
    asked = [own, *(cost.share(each.filters) for each, _ in windowed.lookups)]
    share = cost.share(keys.conditions) if keys is not None else min(1, sum(asked))
    tests = [
        cost.share(each.filters)
        for each, _ in windowed.lookups
        if each.kind in (Kind.EXISTS, Kind.NOT_EXISTS)
    ]
    if tests:
        return cost.sorts_less(share, own + sum(tests))
    large = all(cost.has_a_large_aggregate(each.table, each.keys) for each, _ in windowed.lookups)
    if keys is not None:
        return cost.leaves_few(keys.conditions, large)
    names = {each.alias for each, _ in windowed.lookups}
    others = [
        factor
        for factor in (*anchor.block.factors.values(), *block.factors.values())
        if factor.alias not in names | {anchor.factor.alias, anchor.via}
    ]
    return large and not any(each.table is None or cost.is_small(each.table) for each in others)


def _window(lookup: Lookup, function: str) -> str:
    return f"{function} OVER (PARTITION BY {', '.join(map(quote, lookup.keys))})"


def _passing(lookup: Lookup, windows: NewColumns) -> list[str]:
    """A condition: some row of the key passes the filters. No condition without filters."""
    if not lookup.filters:
        return []
    window = _window(lookup, f"max(CASE WHEN {lookup.condition} THEN 1 END)")
    return [f"{windows.reference(window)} IS NOT NULL"]


def _value(lookup: Lookup, node: exp.Expr, windows: NewColumns, guard: str = "") -> str:
    """The text of an expression over aggregates, with windows in their place.

    ``guard`` is a condition under which the windows count, or empty.
    """
    text, parts = lookup.block.text, {}
    for aggregate in aggregates_of(node):
        function = aggregate_of(text, aggregate, lookup.condition)
        reference = windows.reference(_window(lookup, function))
        if guard:
            otherwise = " ELSE 0" if isinstance(aggregate, exp.Count) else ""
            reference = f"CASE WHEN {guard} THEN {reference}{otherwise} END"
        parts[id(aggregate)] = reference
    return f"({replaced(text, node, parts)})"


def _conjunct(lookup: Lookup, anchor: Anchor, windows: NewColumns) -> Edit:
    """The edit that replaces a lookup in a condition."""
    if lookup.node is None:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    span = lookup.block.text.place(lookup.node)
    if lookup.kind is Kind.SCALAR:
        if lookup.value is None:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        guard = "" if anchor.not_null else anchor.present
        return Edit(span, _value(lookup, lookup.value, windows, guard))
    conditions = [anchor.present]
    if lookup.comparison is not None:
        conditions.append(_differs(lookup, lookup.comparison, windows))
    else:
        conditions += _passing(lookup, windows)
    if lookup.kind is Kind.IN and lookup.value is not None:
        conditions.append(_value(lookup, lookup.value, windows))
    if lookup.kind is Kind.NOT_EXISTS:
        return Edit(span, f"NOT coalesce({' AND '.join(conditions)}, false)")
    return Edit(span, f"({' AND '.join(conditions)})")


def _differs(lookup: Lookup, comparison: Comparison, windows: NewColumns) -> str:
    """A condition: some row of the key fulfils the comparison, by its minimum or maximum."""
    column, condition = quote(comparison.column), lookup.condition
    value = f"CASE WHEN {condition} THEN {column} END" if condition else column
    names = {"<>": ("min", "max"), "<": ("min",), "<=": ("min",), ">": ("max",), ">=": ("max",)}
    other = lookup.block.text.of(comparison.with_)
    tests = [
        f"{windows.reference(_window(lookup, f'{name}({value})'))} {comparison.operator} {other}"
        for name in names[comparison.operator]
    ]
    return f"({' OR '.join(tests)})"


def _columns(lookup: Lookup, anchor: Anchor, windows: NewColumns) -> tuple[dict[str, str], str]:
    """The text for each column of a derived table, and the condition that replaces its join."""
    found = {}
    for name, value in lookup.columns:
        if isinstance(value, exp.Column):
            found[name] = anchor.key(lookup.keys.index(value.name.lower()))
        else:
            found[name] = _value(lookup, value, windows)
    return found, " AND ".join([anchor.present, *_passing(lookup, windows)])


def _source(text: Text, windowed: Windowed, keys: KeyTable | None) -> list[Edit]:
    """Edits that add the windows to the anchor's scan, and to the subquery around it, if any."""
    anchor = windowed.anchor
    factor = anchor.factor
    if factor.reference is None:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    windows = windowed.windows.names
    if not windows:
        return []
    listed = ",".join(f"\n  {window} AS {name}" for window, name in windows.items())
    alias = "" if factor.named else f" AS {quote(factor.alias)}"
    table = factor.reference.of(text.sql)
    found = [lookup for lookup, _ in windowed.lookups]
    if keys is not None and windowed.handed is not None:
        own = quote(factor.alias)
        handed = "".join(
            f", {keys.name}.{quote(column)} AS {name}" for column, name in windowed.handed.items()
        )
        conditions = [f"{own}.{quote(keys.key)} = {keys.name}.{quote(keys.column)}"]
        conditions += [keys.asked(text), needed(anchor, found, f"{own}.")]
        read = (
            f"(SELECT {own}.*{handed} FROM {table} AS {own}, {keys.listed(text)}"
            f"\n  WHERE {' AND '.join(filter(None, conditions))})"
        )
    else:
        conditions = [needed(anchor, found)]
        if keys is not None:
            conditions.append(
                f"{quote(keys.key)} IN (SELECT {keys.name}.{quote(keys.column)} "
                f"FROM {keys.listed(text)} WHERE {keys.asked(text)})"
            )
        where = " AND ".join(filter(None, conditions))
        read = f"{table}\n  WHERE {where}" if where else table
    edits = [Edit(factor.reference, f"(SELECT *,{listed} FROM {read}){alias}")]
    if anchor.via is not None:
        last = text.place(anchor.block.select.expressions[-1]).stop
        handed = "".join(
            f", {quote(factor.alias)}.{quote(name)} AS {name}" for name in windows.values()
        )
        edits.append(Edit(Span(last, last), handed))
    return edits


def _require_safe(block: Block, found: list[Lookup]) -> None:
    """Raises :class:`Refused` if a comparison with a lookup's value may fail for some row.

    The rewritten statement evaluates it for the anchor's rows before the joins with other tables
    drop some of them.
    """
    derived = {lookup.alias for lookup in found if lookup.kind is Kind.DERIVED}
    if len(block.factors.keys() - derived) == 1:
        return
    for conjunct in block.certain:
        inside = {id(part) for part in conjunct.walk()}
        reads = not any(conjunct.find_all(exp.Query)) and block.aliases(conjunct) & derived
        values = [
            (lookup.block, aggregate)
            for lookup in found
            if lookup.kind is Kind.SCALAR and id(lookup.node) in inside and lookup.value is not None
            for aggregate in aggregates_of(lookup.value)
        ]
        if (values or reads) and may_fail((block, conjunct), *values):
            raise Refused(Refusal.MAY_FAIL)
