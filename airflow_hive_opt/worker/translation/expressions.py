"""Expressions that DuckDB evaluates exactly as Spark, whatever Spark's settings are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.worker.translation.casts import cast
from airflow_hive_opt.worker.translation.functions import FUNCTIONS, concatenated, modulo
from airflow_hive_opt.worker.translation.nodes import (
    function_name,
    integer_of,
    is_condition,
    not_understood,
    only,
)
from airflow_hive_opt.worker.translation.protocols import Subqueries
from airflow_hive_opt.worker.translation.relations import Query, Scope
from airflow_hive_opt.worker.translation.typed import (
    NULL,
    Typed,
    alike,
    as_date,
    constant,
    number,
    text,
)
from airflow_hive_opt.worker.translation.work import Work
from airflow_hive_opt.worker.types import BOOLEAN, DATE, STRING, VOID, SqlType
from airflow_hive_opt.worker.unanswered import NotUnderstood

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
# Which of two of them binds closer differs between the parsers.
_PREDICATES = (*COMPARISONS, exp.Is, exp.In, exp.Between, exp.Like, exp.Not, exp.And, exp.Or)
_UNITS = {"DAY": "DAY", "WEEK": "WEEK", "MONTH": "MONTH", "YEAR": "YEAR"}
_LATEST = "DATE '9999-12-31'"
_ERROR = "error('a calculated date is out of range')"
_MOST_MOVES = 3


class Expressions:
    """Translates the expressions of one query; ``scope`` has the columns that they may read."""

    def __init__(self, work: Work, scope: Scope, subqueries: Subqueries) -> None:
        self.work = work
        self.scope = scope
        self._subqueries = subqueries

    def condition(self, node: exp.Expr) -> str:
        """A condition, exactly; raises :class:`NotUnderstood`."""
        return self.boolean(node).sql

    def boolean(self, node: exp.Expr) -> Typed:
        """A value that is a boolean or NULL."""
        found = self.value(node)
        if found.type not in (BOOLEAN, VOID):
            raise not_understood(node, self.work.sql)
        return Typed(found.as_(BOOLEAN), BOOLEAN)

    def value(self, node: exp.Expr) -> Typed:
        """Any expression; raises :class:`NotUnderstood`."""
        check_budget()
        translate = _NODES.get(type(node))
        if translate is not None:
            return translate(self, node)
        if type(node) in COMPARISONS:
            return self._comparison(node)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if isinstance(node, exp.DPipe):
            return concatenated(self, node)
        if isinstance(node, exp.Mod):
            self.work.functions.append("mod")  # or the operator %
            return modulo(self, node)
        found = FUNCTIONS.get(function_name(node, self.work.sql))
        if found is None or not isinstance(node, found.node):
            raise not_understood(node, self.work.sql)
        self.work.functions.append(function_name(node, self.work.sql))
        return found.translate(self, node)

    def operand(self, node: exp.Expr) -> Typed:
        """An operand; a predicate must be in parentheses."""
        if isinstance(node, _PREDICATES):
            raise not_understood(node, self.work.sql)
        return self.value(node)

    def date(self, node: exp.Expr) -> Typed:
        """A date, or a text literal that is one."""
        return Typed(as_date(self.operand(node)).as_(DATE), DATE)

    def typed(self, node: exp.Expr, type_: SqlType) -> Typed:
        """A value of the type, or NULL."""
        found = self.operand(node)
        if found.type not in (type_, VOID):
            raise not_understood(node, self.work.sql)
        return Typed(found.as_(type_), type_)

    def _column(self, node: exp.Column) -> Typed:
        only(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise not_understood(node, self.work.sql)
        return self.scope.column(node.table.lower(), node.name.lower())

    def _literal(self, node: exp.Literal) -> Typed:
        if not node.is_string:
            return number(node.this)
        if node.this in self.work.doubtful:
            raise NotUnderstood("a text with a backslash or a doubled quote")
        return text(node.this)

    def _parameter(self, node: exp.Placeholder) -> Typed:
        if not isinstance(node.this, str) or node.this not in self.work.parameters:
            raise NotUnderstood(f"the parameter {node.this}, which has no value")
        return constant(self.work.parameters[node.this])

    def _paren(self, node: exp.Paren) -> Typed:
        only(node, "this")
        return self.value(node.this)

    def _comparison(self, node: exp.Expr) -> Typed:
        only(node, "this", "expression")
        (left, right), _ = alike([self.operand(node.this), self.operand(node.expression)])
        return Typed(f"({left} {COMPARISONS[type(node)]} {right})", BOOLEAN)

    def _logic(self, node: exp.Expr) -> Typed:
        # long chains nest to the left
        word = "AND" if isinstance(node, exp.And) else "OR"
        parts = [self.boolean(part).sql for part in node.flatten(unnest=False)]
        return Typed(f"({f' {word} '.join(parts)})", BOOLEAN)

    def _not(self, node: exp.Not) -> Typed:
        only(node, "this")
        return Typed(f"(NOT {self.boolean(node.this).sql})", BOOLEAN)

    def _is(self, node: exp.Is) -> Typed:
        only(node, "this", "expression")
        value = self.operand(node.this)
        if isinstance(node.expression, exp.Null):
            return Typed(f"({value.sql} IS NULL)", BOOLEAN)
        if isinstance(node.expression, exp.Boolean) and value.type == BOOLEAN:
            return Typed(f"({value.sql} IS {str(node.expression.this).upper()})", BOOLEAN)
        raise not_understood(node, self.work.sql)

    def _in(self, node: exp.In) -> Typed:
        if node.args.get("query") is not None:
            only(node, "this", "query")
            if not is_condition(node):  # Spark's value is false where it is NULL in standard SQL
                raise NotUnderstood("IN with a query as a value")
            query = self._subqueries.single_column(node.args["query"], self.scope, monotone=False)
            value = self.operand(node.this)
            return Typed(in_query(value, query), BOOLEAN)
        only(node, "this", "expressions")
        values = [self.operand(part) for part in (node.this, *node.expressions)]
        (one, *listed), _ = alike(values)
        return Typed(f"({one} IN ({', '.join(listed)}))", BOOLEAN)

    def _between(self, node: exp.Between) -> Typed:
        only(node, "this", "low", "high")
        value, low, high = (self.operand(node.args[name]) for name in ("this", "low", "high"))
        (left, lowest), _ = alike([value, low])
        (right, highest), _ = alike([value, high])
        return Typed(f"({left} >= {lowest} AND {right} <= {highest})", BOOLEAN)

    def _like(self, node: exp.Like) -> Typed:
        only(node, "this", "expression", "negate")
        value = self.typed(node.this, STRING)
        pattern = self.operand(node.expression)
        if pattern.text is None or "\\" in pattern.text or not pattern.text.isprintable():
            raise not_understood(node, self.work.sql)
        negated = "NOT " if node.args.get("negate") else ""
        return Typed(f"({value.sql} {negated}LIKE {pattern.sql})", BOOLEAN)

    def _exists(self, node: exp.Exists) -> Typed:
        only(node, "this")
        return Typed(
            f"EXISTS ({self._subqueries.query(node.this, self.scope, monotone=False).sql()})",
            BOOLEAN,
        )

    def _scalar(self, node: exp.Subquery) -> Typed:
        only(node, "this")
        # without the columns of the query around it: there the values for no row differ
        query = self._subqueries.single_column(node, None, monotone=False)
        type_ = query.type_of(0)
        return Typed(f"(SELECT c0 FROM ({query.sql()}))", type_)

    def _case(self, node: exp.Case) -> Typed:
        only(node, "this", "ifs", "default")
        subject = self.operand(node.this) if node.this else None
        tests, values = [], []
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            if subject is None:
                tests.append(self.condition(branch.this))
            else:
                (left, right), _ = alike([subject, self.operand(branch.this)])
                tests.append(f"({left} = {right})")
            values.append(self.operand(branch.args["true"]))
        default = node.args.get("default")
        values.append(NULL if default is None else self.operand(default))
        return self.cases(tests, values)

    def cases(self, tests: list[str], values: list[Typed]) -> Typed:
        """CASE with a value for each test and one for ELSE, all of one type."""
        (*chosen, default), type_ = self.same(values)
        branches = " ".join(
            f"WHEN {test} THEN {value}" for test, value in zip(tests, chosen, strict=True)
        )
        return Typed(f"CAST(CASE {branches} ELSE {default} END AS {type_.duckdb})", type_)

    def same(self, values: list[Typed]) -> tuple[list[str], SqlType]:
        """Values of which one is chosen: all of one type, but integers of any size."""
        plain = [Typed(value.sql, value.type) for value in values]  # no text counts as a date
        found, type_ = alike(plain)
        if type_.is_decimal and {value.type for value in values} - {type_, VOID}:
            raise NotUnderstood("a choice between decimals of several types")
        return found, type_

    def _arithmetic(self, node: exp.Expr) -> Typed:
        only(node, "this", "expression")
        left, right = node.this, node.expression
        if isinstance(node, exp.Add) and isinstance(left, exp.Interval):
            left, right = right, left
        if isinstance(right, exp.Interval) and not isinstance(node, exp.Mul):
            return self._moved_by_interval(node, left, right)
        first, second = self.operand(left), self.operand(right)
        if first.type == DATE and second.number is not None and not isinstance(node, exp.Mul):
            by = integer_of(right)
            return self.moved(first, -by if isinstance(node, exp.Sub) else by, "DAY")
        if not (first.type.is_integer and second.type.is_integer):
            raise not_understood(node, self.work.sql)
        (one, other), type_ = alike([first, second])
        # DuckDB raises an error for a result that the type can't hold
        sql = f"({one} {_ARITHMETIC[type(node)]} {other})"
        return Typed(f"CAST({sql} AS {type_.duckdb})", type_)

    def _moved_by_interval(self, node: exp.Expr, left: exp.Expr, interval: exp.Interval) -> Typed:
        only(interval, "this", "unit")
        unit = _UNITS.get(str(interval.args.get("unit")).upper().removesuffix("S"))
        found = self.operand(left)
        written = interval.this
        if unit is None or found.type != DATE or not isinstance(written, exp.Literal):
            raise not_understood(node, self.work.sql)
        if not re.fullmatch(r"-?\d{1,6}", written.this):
            raise not_understood(node, self.work.sql)
        by = int(written.this)
        return self.moved(found, -by if isinstance(node, exp.Sub) else by, unit)

    def moved(self, value: Typed, by: int, unit: str) -> Typed:
        """A date plus a number of units; an error if it leaves Spark's calendar."""
        if abs(by) > 999_999 or value.sql.count(_ERROR) > _MOST_MOVES:  # each repeats its value
            raise NotUnderstood("a long or nested interval")
        later = f"CAST({value.sql} + to_{unit.lower()}s({by}) AS DATE)"
        within = f"{later} BETWEEN DATE '1582-10-15' AND {_LATEST}"
        sql = f"CASE WHEN {within} OR {value.sql} IS NULL THEN {later} ELSE {_ERROR} END"
        return Typed(f"CAST({sql} AS DATE)", DATE)

    def _negative(self, node: exp.Neg) -> Typed:
        only(node, "this")
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number(node.this.this, negative=True)
        value = self.operand(node.this)
        if not value.type.is_integer:
            raise not_understood(node, self.work.sql)
        return Typed(f"CAST((-{value.sql}) AS {value.type.duckdb})", value.type)


def in_query(value: Typed, query: Query) -> str:
    """IN with a query of one column, as one type."""
    (left, right), _ = alike([value, Typed("c0", query.type_of(0))])
    return f"({left} IN (SELECT {right} FROM ({query.sql()})))"


_NODES: dict[type[exp.Expr], Callable[[Expressions, Any], Typed]] = {
    exp.Column: Expressions._column,
    exp.Literal: Expressions._literal,
    exp.Placeholder: Expressions._parameter,
    exp.Paren: Expressions._paren,
    exp.Null: lambda _, __: NULL,
    exp.Boolean: lambda _, node: constant(bool(node.this)),
    exp.And: Expressions._logic,
    exp.Or: Expressions._logic,
    exp.Not: Expressions._not,
    exp.Is: Expressions._is,
    exp.In: Expressions._in,
    exp.Between: Expressions._between,
    exp.Like: Expressions._like,
    exp.Exists: Expressions._exists,
    exp.Subquery: Expressions._scalar,
    exp.Case: Expressions._case,
    exp.Neg: Expressions._negative,
    exp.Cast: cast,
    exp.TryCast: cast,
}
