"""Checks which expressions a rewriting may move, and renames columns in their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_hive_opt.rewriting.blocks import Block, Text
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.identifiers import quote

# Total and deterministic expressions. A rewriting may evaluate them for more rows than the original
# statement: they neither fail nor cost much.
_KNOWN = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Placeholder, exp.Paren),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ),
    *(exp.Is, exp.Between, exp.In, exp.Like, exp.Case, exp.If, exp.Coalesce),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
# Spark averages whole numbers in floating point. That is exact up to 2**53, so for 32-bit numbers.
AVERAGED = re.compile(r"(tiny|small)?int(eger)?|decimal\(.*|decimal")
_EXACT = re.compile(r"(tiny|small|big)?int(eger)?|decimal\(.*|decimal")
_KEYS = re.compile(r"(tiny|small|big)?int(eger)?|decimal\(.*|decimal|string|date|timestamp|boolean")
AGGREGATES = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)


def require_known(node: exp.Expr) -> None:
    """Raises :class:`Refused` unless the expression may be evaluated anywhere."""
    for part in node.walk(prune=_is_constant):
        if _is_constant(part):
            continue
        if not isinstance(part, (*_KNOWN, *_ARITHMETIC)) or part.args.get("query"):
            raise Refused(Refusal.EXPRESSION_NOT_KNOWN)


def may_fail(*parts: tuple[Block, exp.Expr]) -> bool:
    """Whether a condition with these parts may raise an error in ANSI mode.

    Arithmetic may overflow. Text that is compared with a value of another type may not be a number.
    Subqueries are ignored; an aggregate stands for the value of one.
    """
    kinds = {kind for block, node in parts for kind in _kinds(block, node)}
    return "arithmetic" in kinds or len(kinds) > 1


def _kinds(block: Block, node: exp.Expr) -> Iterator[str]:
    """``text`` or ``other`` for each operand, ``arithmetic`` for a part that may overflow."""
    for part in node.walk(prune=lambda each: isinstance(each, (exp.Query, exp.Cast, exp.AggFunc))):
        if isinstance(part, exp.Column):
            ref = block.owner(part)
            yield "text" if ref and block.type_of(ref) == "string" else "other"
        elif isinstance(part, (exp.Min, exp.Max)):
            yield from _kinds(block, part.this)
        elif isinstance(part, exp.AggFunc) or _is_constant(part):
            yield "other"
        elif isinstance(part, exp.Literal):
            if not part.is_string:
                yield "other"
        elif not isinstance(part, (*_KNOWN, exp.Query)):
            yield "arithmetic"


def _is_constant(node: exp.Expr) -> bool:
    """Whether the node is a typed literal such as ``DATE'2020-01-01'``."""
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)


def require_key_type(*types: str | None) -> None:
    """Raises :class:`Refused` unless all types are the same and group exactly by equality."""
    first = types[0]
    if first is None or any(each != first for each in types) or not _KEYS.fullmatch(first):
        raise Refused(Refusal.KEY_TYPE)


def require_exact(block: Block, aggregate: exp.Expr) -> None:
    """Raises :class:`Refused` unless the aggregate's value is the same in any order of rows."""
    if not isinstance(aggregate, AGGREGATES):
        raise Refused(Refusal.EXPRESSION_NOT_KNOWN)
    argument = aggregate.this
    if any(value for name, value in aggregate.args.items() if name not in ("this", "big_int")):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if isinstance(argument, exp.Star) and isinstance(aggregate, exp.Count):
        return
    require_known(argument)
    if isinstance(aggregate, exp.Count):
        return
    if isinstance(aggregate, exp.Sum):
        allowed = _EXACT
    else:
        allowed = AVERAGED if isinstance(aggregate, exp.Avg) else _KEYS
    for column in argument.find_all(exp.Column):
        ref = block.owner(column)
        type_ = block.type_of(ref) if ref is not None else None
        if type_ is None or not allowed.fullmatch(type_):
            raise Refused(Refusal.FLOATING_POINT)
    for literal in argument.find_all(exp.Literal):
        if not literal.is_string and not re.fullmatch(r"[\d.]+", literal.name):
            raise Refused(Refusal.FLOATING_POINT)


def aggregates_of(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates in an expression over a group.

    Raises :class:`Refused` unless the expression has only aggregates, literals and operators. A
    bare column could mean another table's column in another position. A divisor must be a literal
    other than 0, because another expression might be 0 in rows for which the original statement
    does not evaluate it.
    """
    found: list[exp.Expr] = []
    for part in node.walk(prune=lambda inner: isinstance(inner, exp.AggFunc)):
        if isinstance(part, exp.AggFunc):
            found.append(part)
        elif isinstance(part, exp.Div):
            by = part.expression
            if not isinstance(by, exp.Literal) or by.is_string or not float(by.name):
                raise Refused(Refusal.EXPRESSION_NOT_KNOWN)
        elif isinstance(part, (exp.Column, exp.Identifier)) or not isinstance(
            part, (*_KNOWN, *_ARITHMETIC)
        ):
            raise Refused(Refusal.EXPRESSION_NOT_KNOWN)
    return found


def renamed(text: Text, node: exp.Expr, name_of: Callable[[exp.Column], str | None]) -> str:
    """The node's text with columns replaced by ``name_of``, except where that is ``None``."""
    edits = [
        Edit(text.place(column), name)
        for column in node.find_all(exp.Column)
        if (name := name_of(column)) is not None
    ]
    return spliced(text.sql, edits, text.place(node))


def bare(text: Text, node: exp.Expr) -> str:
    """The text of an expression over one table, with unqualified columns."""
    return renamed(text, node, lambda column: quote(column.name))


def same_conditions(text: Text, some: Iterable[exp.Expr], others: Iterable[exp.Expr]) -> bool:
    """Whether both are the same conditions on one table, in any order."""

    def texts(conditions: Iterable[exp.Expr]) -> set[str]:
        return {renamed(text, each, lambda c: quote(c.name.lower())) for each in conditions}

    return texts(some) == texts(others)


def aggregate_of(text: Text, node: exp.Expr, condition: str = "") -> str:
    """The text of an aggregate over one table, of the rows that fulfil the condition, if any."""
    star = isinstance(node.this, exp.Star)
    argument = "*" if star else bare(text, node.this)
    if condition:
        argument = f"CASE WHEN {condition} THEN {'1' if star else argument} END"
    return f"{node.key}({argument})"


@dataclass(frozen=True)
class NewColumns:
    """Columns that a rewriting adds to the FROM item ``alias``; ``names`` are by their SQL text."""

    alias: str
    prefix: str
    names: dict[str, str] = field(default_factory=dict)

    def reference(self, text: str) -> str:
        """The SQL text for the value of the column ``text``, which is added if it is new."""
        name = self.names.setdefault(text, f"{self.prefix}{len(self.names)}")
        return f"{quote(self.alias)}.{quote(name)}"


def replaced(text: Text, node: exp.Expr, parts: Mapping[int, str]) -> str:
    """The node's text with inner nodes replaced by ``parts``, which has texts by ``id``."""
    edits = [Edit(text.place(part), parts[id(part)]) for part in node.walk() if id(part) in parts]
    return spliced(text.sql, edits, text.place(node))
