"""Evaluates constant expressions, as far as Hive evaluates them during planning."""

from __future__ import annotations

import re

from airflow_hive_opt.hive.parser.syntax import Call, Constant, Expression

TRUE = Constant("true", "boolean")
FALSE = Constant("false", "boolean")
NULL = Constant("null", "void")


def fold(expression: Expression) -> Expression:
    """Returns the constant value of an expression, else the expression with its parts folded.

    >>> from airflow_hive_opt.hive.parser.syntax import Column
    >>> fold(Call("upper", (Constant("'x'", "string"),)))
    Constant(text="'X'", type='string')
    >>> fold(Call("or", (FALSE, Call(">", (Column("key"), Constant("5", "int"))))))
    Call(name='>', ...)
    """
    if not isinstance(expression, Call) or expression.over or expression.distinct:
        return expression
    arguments = tuple(fold(argument) for argument in expression.arguments)
    logical = _logical(expression.name, arguments)
    if logical is not None:
        return logical
    if arguments and all(isinstance(part, Constant) for part in arguments):
        constants = tuple(part for part in arguments if isinstance(part, Constant))
        value = _evaluated(expression.name, constants)
        if value is not None:
            return value
    if any(part == NULL for part in arguments) and expression.name in (*_STRICT, "upper", "lower"):
        return NULL
    if arguments == expression.arguments:
        return expression
    return Call(expression.name, arguments, expression.at, note=expression.note)


_STRICT = ("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "like", "rlike")


def _logical(name: str, arguments: tuple[Expression, ...]) -> Expression | None:
    if name in ("and", "or"):
        neutral, decisive = (TRUE, FALSE) if name == "and" else (FALSE, TRUE)
        if decisive in arguments:
            return decisive
        left = [part for part in arguments if part != neutral]
        return Call(name, tuple(left)) if len(left) > 1 else left[0] if left else neutral
    if name == "when" and arguments[1:] == (TRUE, FALSE):
        return Call("nvl", (arguments[0], FALSE))
    return None


def _evaluated(name: str, parts: tuple[Constant, ...]) -> Constant | None:
    first = parts[0]
    if name == "not" and first in (TRUE, FALSE):
        return FALSE if first == TRUE else TRUE
    if name in ("isnull", "isnotnull"):
        return _truth((first == NULL) == (name == "isnull"))
    if NULL in parts:
        return NULL if name in ("in", "between") and first == NULL else None
    if name == "in":
        equal = [_compared("=", first, other) for other in parts[1:]]
        return None if None in equal else _truth(TRUE in equal)
    if name == "between":
        low, high = _compared(">=", first, parts[1]), _compared("<=", first, parts[2])
        return None if None in (low, high) else _truth(low == high == TRUE)
    if name in ("upper", "lower", "ucase", "lcase") and first.type == "string":
        text = first.text[1:-1]
        return _text(text.upper() if name in ("upper", "ucase") else text.lower())
    if name == "length" and first.type == "string":
        return Constant(str(len(first.text) - 2), "int")
    if name == "concat" and all(part.type == "string" for part in parts):
        return _text("".join(part.text[1:-1] for part in parts))
    if name == "like" and all(part.type == "string" for part in parts):
        pattern = re.escape(parts[1].text[1:-1]).replace("%", ".*").replace("_", ".")
        return _truth(re.fullmatch(pattern, first.text[1:-1], re.DOTALL) is not None)
    return _compared(name, first, parts[1]) if len(parts) == 2 else None


def _truth(value: bool) -> Constant:
    return TRUE if value else FALSE


def _text(value: str) -> Constant:
    return Constant(f"'{value}'", "string")


def _compared(name: str, first: Constant, second: Constant) -> Constant | None:
    left, right = _value(first), _value(second)
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        order = (left > right) - (left < right)
    else:
        try:
            one, other = float(left), float(right)
        except ValueError:
            return NULL
        order = (one > other) - (one < other)
    truths = {
        "=": order == 0,
        "<=>": order == 0,
        "<>": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }
    return _truth(truths[name]) if name in truths else None


def _value(constant: Constant) -> str | float | None:
    if constant.type == "string":
        return constant.text[1:-1]
    try:
        return float(constant.text.rstrip("LSYlsyBDbd"))
    except ValueError:
        return None
