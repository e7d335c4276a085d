"""Comparisons of texts with numbers or dates, which Spark casts as its settings say.

A text in the usual form has the same value under all settings. Any other text counts as fulfilling
the condition, so that more rows do. Such a text in a partition's name or in a small table is rare.

>>> text_as(Typed("s", STRING), INT)[:60]
"CASE WHEN regexp_full_match(s, '0|-?[1-9][0-9]{0,8}') THEN T"
"""

from __future__ import annotations

from sqlglot import exp

from airflow_hive_opt.worker.casts import value_of_text
from airflow_hive_opt.worker.translation.expressions import COMPARISONS, Expressions
from airflow_hive_opt.worker.translation.nodes import only
from airflow_hive_opt.worker.translation.typed import Typed, alike
from airflow_hive_opt.worker.types import DATE, INT, STRING, SqlType
from airflow_hive_opt.worker.unanswered import NotUnderstood

_ORDERED = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def leniently(to: Expressions, node: exp.Expr) -> str:
    """A condition that is true whenever the comparison is; raises :class:`NotUnderstood`."""
    if isinstance(node, _ORDERED):
        only(node, "this", "expression")
        pairs = [(node.this, COMPARISONS[type(node)], node.expression)]
    elif isinstance(node, exp.Between):
        only(node, "this", "low", "high")
        pairs = [(node.this, ">=", node.args["low"]), (node.this, "<=", node.args["high"])]
    elif isinstance(node, exp.In) and not node.args.get("query"):
        only(node, "this", "expressions")
        found = [_compared(to, node.this, "=", part) for part in node.expressions]
        return f"({' OR '.join(found)})"
    else:
        raise NotUnderstood("a condition that compares no text")
    return f"({' AND '.join(_compared(to, *pair) for pair in pairs)})"


def _compared(to: Expressions, left: exp.Expr, comparison: str, right: exp.Expr) -> str:
    values = [to.operand(left), to.operand(right)]
    types = {value.type for value in values}
    if STRING not in types or len(types) != 2 or any(value.text is not None for value in values):
        (one, two), _ = alike(values)
        return f"({one} {comparison} {two})"
    (other,) = types - {STRING}
    if other != DATE and not other.is_integer:
        raise NotUnderstood("a comparison of values of unlike types")
    other = DATE if other == DATE else INT
    unknown, sides = "", []
    for value in values:
        if value.type != STRING:
            sides.append(value)
            continue
        as_other = text_as(value, other)
        unknown = f"({value.sql} IS NOT NULL AND ({as_other}) IS NULL)"
        sides.append(Typed(f"({as_other})", other))
    (one, two), _ = alike(sides)
    if to.work.stays(unknown):  # a bare comparison lets DuckDB join by hash
        return f"({one} {comparison} {two})"
    # a NULL on the other side makes the comparison NULL, whatever the text is
    known = " AND ".join(f"{value.sql} IS NOT NULL" for value in values)
    return f"(({unknown} AND {known}) OR ({one} {comparison} {two}))"


def text_as(value: Typed, type_: SqlType) -> str:
    """The number or date of a text in its usual form, and NULL for any other text."""
    if type_ == DATE:
        return value_of_text(value.sql, "date")
    form = "0|-?[1-9][0-9]{0,8}"
    return (
        f"CASE WHEN regexp_full_match({value.sql}, '{form}') "
        f"THEN TRY_CAST({value.sql} AS INTEGER) END"
    )
