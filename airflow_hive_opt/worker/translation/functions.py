"""Functions of Spark that a function of DuckDB equals for all values of the worker's types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from airflow_hive_opt.worker.translation.nodes import integer_of, not_understood, only
from airflow_hive_opt.worker.translation.protocols import Arguments
from airflow_hive_opt.worker.translation.typed import Typed, alike
from airflow_hive_opt.worker.types import BIGINT, BOOLEAN, DATE, INT, MOST_DIGITS, STRING, decimal

_Translate = Callable[[Arguments, Any], Typed]
_TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "QUARTER": "quarter",
    "WEEK": "week",
}


def _date_part(expression: str) -> _Translate:
    """A function of a date that returns an integer."""

    def translate(to: Arguments, node: exp.Expr) -> Typed:
        only(node, "this")
        value = to.date(_without_conversion(node.this))
        return Typed(f"CAST({expression.format(value.sql)} AS INTEGER)", INT)

    return translate


def _without_conversion(node: exp.Expr) -> exp.Expr:
    """The argument that sqlglot wraps as a date."""
    while isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
        node = node.this
    return node


def _to_date(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "safe")
    return to.date(node.this)


def _date_add(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "expression", "unit")
    if str(node.args.get("unit")).upper() != "DAY":
        raise not_understood(node, to.work.sql)
    return to.moved(to.date(_without_conversion(node.this)), integer_of(node.expression), "DAY")


def _add_months(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "expression")
    return to.moved(to.date(_without_conversion(node.this)), integer_of(node.expression), "MONTH")


def _last_day(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this")
    return Typed(f"last_day({to.date(_without_conversion(node.this)).sql})", DATE)


def _date_diff(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "expression")
    end = to.date(_without_conversion(node.this))
    start = to.date(_without_conversion(node.expression))
    return Typed(f"CAST({end.as_(DATE)} - {start.as_(DATE)} AS INTEGER)", INT)


def _trunc(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "unit")
    unit = _TRUNCATED.get(str(node.args.get("unit")).upper().strip("'"))
    value = to.date(_without_conversion(node.this))
    if unit is None or value.type != DATE:
        raise not_understood(node, to.work.sql)
    return Typed(f"CAST(date_trunc('{unit}', {value.sql}) AS DATE)", DATE)


def _substring(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "start", "length")
    value = to.typed(node.this, STRING)
    start = integer_of(node.args["start"])
    length = node.args.get("length")
    if start < 1 or (length is not None and integer_of(length) < 0):
        raise not_understood(node, to.work.sql)
    listed = f", {integer_of(length)}" if length is not None else ""
    return Typed(f"substring({value.sql}, {start}{listed})", STRING)


def _length(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this")
    return Typed(f"CAST(length({to.typed(node.this, STRING).sql}) AS INTEGER)", INT)


def _concat(to: Arguments, node: exp.Expr) -> Typed:
    # an argument that is NULL makes NULL
    only(node, "expressions", "safe")
    values = [to.typed(part, STRING).sql for part in node.expressions]
    return Typed(f"({' || '.join(values)})", STRING)


def concatenated(to: Arguments, node: exp.Expr) -> Typed:
    """The operator ``||``."""
    only(node, "this", "expression", "safe")
    values = to.typed(node.this, STRING), to.typed(node.expression, STRING)
    return Typed(f"({values[0].sql} || {values[1].sql})", STRING)


def _coalesce(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "expressions")
    values, type_ = to.same([to.operand(part) for part in (node.this, *node.expressions)])
    return Typed(f"CAST(coalesce({', '.join(values)}) AS {type_.duckdb})", type_)


def _if(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "true", "false")
    if node.args.get("false") is None:
        raise not_understood(node, to.work.sql)
    values = [to.operand(node.args[name]) for name in ("true", "false")]
    return to.cases([to.condition(node.this)], values)


def _nullif(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "expression")
    value, other = to.operand(node.this), to.operand(node.expression)
    (left, right), _ = alike([value, other])
    sql = f"CASE WHEN {left} = {right} THEN NULL ELSE {value.sql} END"
    return Typed(f"CAST({sql} AS {value.type.duckdb})", value.type)


def modulo(to: Arguments, node: exp.Expr) -> Typed:
    """The operator ``%`` and its function."""
    only(node, "this", "expression")
    value, by = to.operand(node.this), to.operand(node.expression)
    # by zero, it is NULL or an error as a setting says
    if not value.type.is_integer or by.number is None or by.number < 1:
        raise not_understood(node, to.work.sql)
    (left, right), type_ = alike([value, by])
    return Typed(f"CAST(({left} % {right}) AS {type_.duckdb})", type_)


def _starts_with(to: Arguments, node: exp.Expr) -> Typed:
    only(node, "this", "expression")
    values = to.typed(node.this, STRING), to.typed(node.expression, STRING)
    return Typed(f"starts_with({values[0].sql}, {values[1].sql})", BOOLEAN)


def _is_null(word: str) -> _Translate:
    def translate(to: Arguments, node: exp.Anonymous) -> Typed:
        return Typed(f"({to.operand(_one(to, node)).sql} {word})", BOOLEAN)

    return translate


def _weekday(to: Arguments, node: exp.Anonymous) -> Typed:
    return Typed(f"CAST((isodow({to.date(_one(to, node)).sql}) - 1) AS INTEGER)", INT)


def _one(to: Arguments, node: exp.Anonymous) -> exp.Expr:
    if len(node.expressions) != 1:
        raise not_understood(node, to.work.sql)
    argument: exp.Expr = node.expressions[0]
    return argument


def _aggregate(to: Arguments, node: exp.AggFunc) -> Typed:
    """COUNT, MIN, MAX and SUM."""
    inner = node.this
    distinct = ""
    if isinstance(inner, exp.Distinct):
        only(inner, "expressions")
        distinct = "DISTINCT "
        if len(inner.expressions) != 1:
            raise not_understood(node, to.work.sql)
        inner = inner.expressions[0]
    if isinstance(node, exp.Count):
        only(node, "this", "big_int")
        if isinstance(inner, exp.Star) and not distinct:
            only(inner)
            return Typed("count(*)", BIGINT)
        return Typed(f"count({distinct}{to.operand(inner).sql})", BIGINT)
    only(node, "this")
    value = to.operand(inner)
    if isinstance(node, (exp.Min, exp.Max)):
        name = "min" if isinstance(node, exp.Min) else "max"
        return Typed(f"{name}({value.sql})", value.type)
    if value.type.is_integer:
        return Typed(f"CAST(sum({distinct}{value.sql}) AS BIGINT)", BIGINT)
    if value.type.is_decimal and value.type.precision + 10 <= MOST_DIGITS:
        type_ = decimal(value.type.precision + 10, value.type.scale)
        return Typed(f"CAST(sum({distinct}{value.sql}) AS {type_.duckdb})", type_)
    raise not_understood(node, to.work.sql)


@dataclass(frozen=True)
class _Function:
    """The node that the parser makes of a function, and its translation."""

    node: type[exp.Expr]
    translate: _Translate


# By Spark's name: the parser also knows functions of these nodes that Spark does not have.
FUNCTIONS = {
    "year": _Function(exp.Year, _date_part("year({})")),
    "quarter": _Function(exp.Quarter, _date_part("quarter({})")),
    "month": _Function(exp.Month, _date_part("month({})")),
    "day": _Function(exp.Day, _date_part("day({})")),
    "dayofmonth": _Function(exp.DayOfMonth, _date_part("day({})")),
    "dayofyear": _Function(exp.DayOfYear, _date_part("dayofyear({})")),
    "dayofweek": _Function(exp.DayOfWeek, _date_part("(dayofweek({}) + 1)")),
    "weekofyear": _Function(exp.WeekOfYear, _date_part("week({})")),
    "weekday": _Function(exp.Anonymous, _weekday),
    "to_date": _Function(exp.TsOrDsToDate, _to_date),
    "date_add": _Function(exp.TsOrDsAdd, _date_add),
    "date_sub": _Function(exp.TsOrDsAdd, _date_add),
    "add_months": _Function(exp.AddMonths, _add_months),
    "last_day": _Function(exp.LastDay, _last_day),
    "datediff": _Function(exp.DateDiff, _date_diff),
    "trunc": _Function(exp.TimestampTrunc, _trunc),
    "substr": _Function(exp.Substring, _substring),
    "substring": _Function(exp.Substring, _substring),
    "length": _Function(exp.Length, _length),
    "char_length": _Function(exp.Length, _length),
    "concat": _Function(exp.Concat, _concat),
    "startswith": _Function(exp.StartsWith, _starts_with),
    "coalesce": _Function(exp.Coalesce, _coalesce),
    "nvl": _Function(exp.Coalesce, _coalesce),
    "ifnull": _Function(exp.Coalesce, _coalesce),
    "if": _Function(exp.If, _if),
    "nullif": _Function(exp.Nullif, _nullif),
    "isnull": _Function(exp.Anonymous, _is_null("IS NULL")),
    "isnotnull": _Function(exp.Anonymous, _is_null("IS NOT NULL")),
    "count": _Function(exp.Count, _aggregate),
    "min": _Function(exp.Min, _aggregate),
    "max": _Function(exp.Max, _aggregate),
    "sum": _Function(exp.Sum, _aggregate),
}
