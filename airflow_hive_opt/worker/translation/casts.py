"""CAST and TRY_CAST, where the value fits into the type under all settings."""

from __future__ import annotations

import re

from sqlglot import exp

from airflow_hive_opt.statement.parse import span_of
from airflow_hive_opt.worker.translation.nodes import integer_of, not_understood, only
from airflow_hive_opt.worker.translation.protocols import Arguments
from airflow_hive_opt.worker.translation.typed import Typed, as_date, integer
from airflow_hive_opt.worker.types import (
    BOOLEAN,
    DATE,
    MOST_DIGITS,
    STRING,
    VOID,
    SqlType,
    common_type,
    decimal,
)

_INTEGER_TYPES = {
    exp.DType.TINYINT: SqlType("tinyint"),
    exp.DType.SMALLINT: SqlType("smallint"),
    exp.DType.INT: SqlType("int"),
    exp.DType.BIGINT: SqlType("bigint"),
}
_MOST_PLAIN_DIGITS = 6
"""Of a fraction: with more of them, Spark writes some numbers with an exponent, unless in ANSI."""


def cast(to: Arguments, node: exp.Cast | exp.TryCast) -> Typed:
    """A value as another type; raises :class:`NotUnderstood`."""
    only(node, "this", "to", "safe")
    target: exp.DataType = node.args["to"]
    value = to.operand(node.this)
    found: Typed | None = None
    if target.this is exp.DType.DATE and not target.expressions:
        found = value if value.type == DATE else as_date(value)
    elif target.this in _INTEGER_TYPES:
        found = _as_integer(value, _INTEGER_TYPES[target.this])
    elif target.this is exp.DType.DECIMAL:
        found = _as_decimal(value, target)
    elif target.this is exp.DType.TEXT:
        span = span_of(node)
        if span and re.search(r"\bas\s+string\s*\)$", span.of(to.work.sql), re.I):
            found = _as_string(value)
    if found is None:
        raise not_understood(node, to.work.sql)
    return found


def _as_integer(value: Typed, type_: SqlType) -> Typed | None:
    if value.number is not None:
        return integer(value.number, type_)
    wider = value.type.is_integer and common_type([value.type, type_]) == type_
    return Typed(value.as_(type_), type_) if wider or value.type == VOID else None


def _as_decimal(value: Typed, target: exp.DataType) -> Typed | None:
    sizes = [integer_of(size.this) for size in target.expressions] or [10]
    precision, scale = (*sizes, 0)[:2]
    if not 0 <= scale <= precision <= MOST_DIGITS or precision == 0:
        return None
    type_ = decimal(precision, scale)
    if value.number is not None:
        fits = abs(value.number) < 10 ** (precision - scale)
    else:
        numeric = value.type.is_integer or value.type.is_decimal or value.type == VOID
        fits = numeric and common_type([value.type, type_]) == type_
    return Typed(f"CAST({value.sql} AS {type_.duckdb})", type_) if fits else None


def _as_string(value: Typed) -> Typed | None:
    if value.type == STRING:
        return Typed(value.sql, STRING)
    plain = value.type.is_integer or value.type in (DATE, BOOLEAN)
    # DuckDB writes no zero before the point of a number without whole digits
    short = value.type.scale <= min(_MOST_PLAIN_DIGITS, value.type.precision - 1)
    if not plain and not (value.type.is_decimal and short):
        return None
    return Typed(f"CAST({value.sql} AS VARCHAR)", STRING)
