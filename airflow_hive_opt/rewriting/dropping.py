"""Removes items of FROM from a block if another item has their columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from airflow_hive_opt.rewriting.blocks import Block
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.parse import Span, span_of


def drop_factors(
    block: Block,
    dropped: Mapping[str, tuple[Mapping[str, str], str]],
    edits: list[Edit],
    gone: Collection[exp.Expr] = (),
) -> list[Edit]:
    """``edits``, and edits that remove the ``dropped`` items from FROM.

    ``dropped`` has for each alias the replacement text of its columns that are read, and the
    condition that replaces its join. ``gone`` are conjuncts that are evaluated elsewhere, and
    subqueries that ``edits`` replace; columns in them need no replacement text.

    FROM becomes a list with commas and all conditions move to WHERE, which is equivalent for inner
    joins. Raises :class:`Refused` for any other join, and for a subquery that reads a dropped
    column.
    """
    if not block.inner_only:
        raise Refused(Refusal.NULL_SUPPLYING_SIDE)
    text = block.text
    inside = list(edits)
    named = {(edit.span.start, edit.span.stop) for edit in edits}  # these include the column's name
    elsewhere = {id(each) for each in gone}
    dropped_selects = {id(each.select) for name, each in block.factors.items() if name in dropped}
    dropped_selects |= elsewhere
    unread = {id(column) for each in gone for column in each.find_all(exp.Column)}
    listed = {item.alias.lower() for item in block.select.expressions if item.alias}
    for column in _own_columns(block, dropped_selects, set(dropped)):
        if id(column) in unread:
            continue
        if not column.table and column.name.lower() in listed:
            clause = column.find_ancestor(exp.Order, exp.Having, exp.Query)
            if isinstance(clause, exp.Order) and clause.parent is block.select:
                continue  # means the select item, not the column
            if isinstance(clause, exp.Having):
                raise Refused(Refusal.FORM_NOT_KNOWN)  # may mean the item or the column
        owner = block.owner(column)
        if owner is None or owner.alias not in dropped:
            continue
        if isinstance(column.find_ancestor(exp.Hint, exp.Query), exp.Hint):
            raise Refused(Refusal.FORM_NOT_KNOWN)  # positions count from the hint's start
        inside.append(Edit(text.place(column), dropped[owner.alias][0][owner.name]))
    places = {(edit.span.start, edit.span.stop) for edit in inside}
    for item in block.select.expressions:
        span = text.place(item)
        if item.alias or not any(span.start <= a and b <= span.stop for a, b in places):
            continue
        if (span.start, span.stop) in named:
            continue
        if not isinstance(item, exp.Column):
            raise Refused(Refusal.FORM_NOT_KNOWN)  # Spark derives its name from its text
        inside.append(Edit(Span(span.stop, span.stop), f" AS {quote(item.name)}"))
    kept = [factor for name, factor in block.factors.items() if name not in dropped]
    conditions = []
    for each in block.certain:
        check_budget()
        if id(each) not in elsewhere:
            conditions.append(spliced(text.sql, inside, text.place(each)))
    conditions += [condition for _, condition in dropped.values() if condition]
    factors = ", ".join(spliced(text.sql, inside, factor.span) for factor in kept)
    whole = _from_to_where(block)
    where = " AND ".join(f"({each})" for each in conditions)
    body = f"{factors} WHERE {where}" if where else factors
    if text.sql[whole.stop : whole.stop + 1].isalnum():  # as in ON (a = b)GROUP BY
        body += " "
    return [*(edit for edit in inside if not _within(edit.span, whole)), Edit(whole, body)]


def _own_columns(block: Block, apart: set[int], names: set[str]) -> list[exp.Column]:
    """The block's own columns; raises :class:`Refused` if a subquery reads a dropped table."""
    found = []
    for child in block.select.iter_expressions():
        for part in nodes(child, stop=(exp.Query,)):
            if isinstance(part, exp.Column):
                found.append(part)
            elif isinstance(part, exp.Query) and id(part) not in apart:
                _require_apart(block, part, names)
    return found


def _require_apart(block: Block, inner: exp.Expr, names: set[str]) -> None:
    """Raises :class:`Refused` if the inner query may read a column of a dropped table."""
    columns = {name for alias in names for name in block.columns(alias) or ()}
    for column in inner.find_all(exp.Column):
        if column.table.lower() in names or (
            not column.table and column.name.lower() in columns and not _in_factor(block, inner)
        ):
            raise Refused(Refusal.FORM_NOT_KNOWN)


def _in_factor(block: Block, inner: exp.Expr) -> bool:
    """Whether the query is in FROM, where the block's columns are not visible."""
    return any(
        factor.select is inner or (factor.select is not None and factor.select is inner.this)
        for factor in block.factors.values()
    )


def _from_to_where(block: Block) -> Span:
    """The span from the first item of FROM to the end of WHERE, or of FROM without WHERE."""
    start = min(factor.span.start for factor in block.factors.values())
    ends = [factor.span.stop for factor in block.factors.values()]
    where = block.select.args.get("where")
    roots = [part for factor in block.factors.values() for part in factor.on]
    tops: dict[int, exp.Expr] = {}
    for root in [*roots, *([where.this] if where else [])]:
        top = root
        while isinstance(top.parent, (exp.Paren, exp.And)):
            top = top.parent
        tops[id(top)] = top
    for top in tops.values():
        for node in nodes(top):
            span = span_of(node)
            if span is not None:
                ends.append(span.stop)
            elif isinstance(node, exp.Column):
                ends.append(block.text.place(node).stop)
    return Span(start, max(ends))


def _within(span: Span, whole: Span) -> bool:
    return whole.start <= span.start and span.stop <= whole.stop
