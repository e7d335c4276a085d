"""Finds lookups: second reads of a table by key, for the rows that have the same key as a row.

All of these are lookups, in the WHERE or FROM of a block that also reads the table ``t`` itself:

- ``x < (SELECT 0.2 * avg(v) FROM t WHERE t.k = o.k)``
- ``EXISTS (SELECT * FROM t b WHERE b.k = a.k AND b.v <> a.v)``, and ``NOT EXISTS``
- ``o.k IN (SELECT k FROM t GROUP BY k HAVING sum(v) > 300)``
- ``JOIN (SELECT k, sum(v) AS s FROM t GROUP BY k) g ON g.k = o.k``
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.blocks import Block, Factor, tables_in
from airflow_hive_opt.rewriting.expressions import (
    aggregates_of,
    bare,
    require_exact,
    require_key_type,
    require_known,
)
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.text_enum import StrEnum
from airflow_hive_opt.statement.zip_strict import zip_strict

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.GT: ">",
    exp.LTE: "<=",
    exp.GTE: ">=",
}
_TURNED = {"<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Kind(StrEnum):
    """The form in which a lookup is written."""

    SCALAR = "scalar subquery"
    EXISTS = "EXISTS"
    NOT_EXISTS = "NOT EXISTS"
    IN = "IN"
    DERIVED = "derived table"


@dataclass(frozen=True)
class Comparison:
    """``column operator with_``: the lookup's column and the enclosing block's expression."""

    column: str
    operator: str
    with_: exp.Expr


@dataclass(frozen=True)
class Lookup:
    """One lookup.

    ``keys`` are columns of the table, and ``outer`` the columns of the enclosing block that equal
    them. ``filters`` are the lookup's own conditions on the table. ``node`` is the part of the text
    to replace: the conjunct or the scalar subquery. ``value`` is the scalar subquery's expression,
    or the HAVING condition of IN. ``columns`` and ``alias`` are the output columns of a derived
    table, with their names, and its alias.
    """

    kind: Kind
    block: Block
    factor: Factor
    table: Table
    keys: tuple[str, ...]
    outer: tuple[ColumnRef, ...]
    filters: tuple[exp.Expr, ...]
    node: exp.Expr | None = None
    value: exp.Expr | None = None
    comparison: Comparison | None = None
    columns: tuple[tuple[str, exp.Expr], ...] = ()
    alias: str = ""

    @property
    def condition(self) -> str:
        """The filters as SQL text with unqualified columns; empty if there are none."""
        return " AND ".join(f"({bare(self.block.text, each)})" for each in self.filters)


def lookups(block: Block) -> Iterator[Lookup | Refused]:
    """The block's lookups, and a :class:`Refused` for each that has the shape but no support."""
    for conjunct in block.certain:
        if not _reads_again(block, conjunct):
            continue
        plain = conjunct.unnest()
        negated = isinstance(plain, exp.Not)
        tested = plain.this.unnest() if negated else plain
        try:
            if isinstance(tested, exp.Exists):
                kind = Kind.NOT_EXISTS if negated else Kind.EXISTS
                yield _correlated(block, kind, conjunct, tested.this)
            elif isinstance(plain, exp.In) and plain.args.get("query"):
                yield _in(block, conjunct, plain)
            else:
                found = [each for each in plain.find_all(exp.Query) if isinstance(each, exp.Select)]
                if len(found) == 1 and isinstance(found[0].parent, exp.Subquery):
                    yield _correlated(block, Kind.SCALAR, found[0].parent, found[0])
        except Refused as refused:
            yield refused
    for factor in block.factors.values():
        if factor.select is not None and factor.join == "INNER":
            if not _reads_again(block, factor.select):
                continue
            try:
                if found_group := _derived(block, factor):
                    yield found_group
            except Refused as refused:
                yield refused


def _reads_again(block: Block, part: exp.Expr) -> bool:
    """Whether the block also reads a table of ``part`` outside ``part``."""
    inside = tables_in(part)
    return any(block.tables[name] > count for name, count in inside.items())


def _one_table(outer: Block, select: exp.Expr | None) -> tuple[Block, Factor, Table]:
    if isinstance(select, exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    inner = Block(outer.text, select)
    unknown = not inner.known or any(
        select.args.get(name) for name in ("limit", "distinct", "with_", "order", "hint")
    )
    if unknown or len(inner.factors) != 1:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    (factor,) = inner.factors.values()
    if factor.table is None or any(select.find_all(exp.Window)):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if len(list(select.find_all(exp.Query))) > 1:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    return inner, factor, factor.table


def _correlated(outer: Block, kind: Kind, node: exp.Expr, select: exp.Expr | None) -> Lookup:
    inner, factor, table = _one_table(outer, select)
    if inner.select.args.get("group") or inner.select.args.get("having"):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    keys: list[str] = []
    outers: list[ColumnRef] = []
    filters: list[exp.Expr] = []
    comparison: Comparison | None = None
    for conjunct in inner.where:
        if inner.aliases(conjunct) <= {factor.alias}:
            require_known(conjunct)
            filters.append(conjunct)
            continue
        plain = conjunct.unnest()
        own, other, operator = _sides(inner, factor, plain)
        if operator == "=":
            keys.append(own)
            outers.append(_outer_column(outer, other))
        elif comparison is None and kind is not Kind.SCALAR:
            require_known(other)
            comparison = Comparison(own, operator, other)
        else:
            raise Refused(Refusal.FORM_NOT_KNOWN)
    if not keys or len(set(keys)) < len(keys):
        raise Refused(Refusal.NO_SHARED_KEY)
    for key, ref in zip_strict(keys, outers):
        require_key_type(inner.type_of(ColumnRef(factor.alias, key)), outer.type_of(ref))
    value = None
    if kind is Kind.SCALAR:
        if len(inner.select.expressions) != 1:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        value = inner.select.expressions[0].unalias()
        _require_aggregates(inner, value)
    elif any(inner.select.find_all(exp.AggFunc)):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if comparison is not None:
        _require_comparable(outer, inner, factor, comparison)
    found = tuple(keys), tuple(outers), tuple(filters)
    return Lookup(kind, inner, factor, table, *found, node, value, comparison)


def _sides(inner: Block, factor: Factor, plain: exp.Expr) -> tuple[str, exp.Expr, str]:
    """The table's column, the other side, and the operator with the column on its left."""
    operator = "=" if isinstance(plain, exp.EQ) else _COMPARISONS.get(type(plain))
    if operator is None:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    left, right = plain.this.unnest(), plain.expression.unnest()
    for own, other, seen in ((left, right, operator), (right, left, _TURNED.get(operator, "="))):
        if isinstance(own, exp.Column) and inner.aliases(own) == {factor.alias}:
            if inner.aliases(other) != {None}:
                raise Refused(Refusal.FORM_NOT_KNOWN)
            return own.name.lower(), other, seen
    raise Refused(Refusal.FORM_NOT_KNOWN)


def _outer_column(outer: Block, node: exp.Expr) -> ColumnRef:
    ref = outer.owner(node) if isinstance(node, exp.Column) else None
    if ref is None:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    return ref


def _require_comparable(outer: Block, inner: Block, factor: Factor, comparison: Comparison) -> None:
    if not isinstance(comparison.with_, exp.Column):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    theirs = outer.type_of(_outer_column(outer, comparison.with_))
    require_key_type(inner.type_of(ColumnRef(factor.alias, comparison.column)), theirs)


def _require_aggregates(inner: Block, value: exp.Expr) -> None:
    found = aggregates_of(value)
    if not found:
        raise Refused(Refusal.FORM_NOT_KNOWN)
    for aggregate in found:
        require_exact(inner, aggregate)


def _grouped(outer: Block, select: exp.Expr | None) -> tuple[Block, Factor, Table, list[str]]:
    """A read of one table grouped by bare columns."""
    inner, factor, table = _one_table(outer, select)
    group = inner.select.args.get("group")
    if group is None or any(value for name, value in group.args.items() if name != "expressions"):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    keys = []
    for key in group.expressions:
        ref = inner.owner(key) if isinstance(key, exp.Column) else None
        if ref is None:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        require_key_type(inner.type_of(ref))
        keys.append(ref.name)
    for conjunct in inner.where:
        if inner.aliases(conjunct) != {factor.alias}:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        require_known(conjunct)
    return inner, factor, table, keys


def _in(outer: Block, conjunct: exp.Expr, node: exp.In) -> Lookup:
    inner, factor, table, keys = _grouped(outer, node.args["query"])
    items = inner.select.expressions
    if len(keys) != 1 or len(items) != 1 or not isinstance(items[0].unalias(), exp.Column):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    ref = _outer_column(outer, node.this.unnest())
    given = inner.owner(items[0].unalias())
    if given is None or given.name != keys[0]:
        raise Refused(Refusal.NO_SHARED_KEY)
    require_key_type(inner.type_of(given), outer.type_of(ref))
    having = inner.select.args.get("having")
    if having is not None:
        _require_aggregates(inner, having.this)
    value = having.this if having is not None else None
    return Lookup(Kind.IN, inner, factor, table, tuple(keys), (ref,), inner.where, conjunct, value)


def _derived(outer: Block, derived: Factor) -> Lookup | None:
    if derived.select is None or not derived.select.args.get("group"):
        return None
    inner, factor, table, keys = _grouped(outer, derived.select)
    if inner.select.args.get("having"):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    columns = []
    named: dict[str, str] = {}
    for item in inner.select.expressions:
        value, name = item.unalias(), item.alias_or_name.lower()
        if isinstance(value, exp.Column):
            ref = inner.owner(value)
            if ref is None or ref.name not in keys:
                raise Refused(Refusal.FORM_NOT_KNOWN)
            named.setdefault(ref.name, name)
        else:
            if not item.alias:
                raise Refused(Refusal.FORM_NOT_KNOWN)
            _require_aggregates(inner, value)
        columns.append((name, value))
    if set(named) != set(keys):
        raise Refused(Refusal.NO_SHARED_KEY)
    outers = tuple(ColumnRef(derived.alias, named[key]) for key in keys)
    return Lookup(
        Kind.DERIVED,
        inner,
        factor,
        table,
        tuple(keys),
        outers,
        inner.where,
        columns=tuple(columns),
        alias=derived.alias,
    )
