"""Drops conjuncts that constants decide.

``1 = 1`` goes, and ``1 = 2`` makes the whole condition false:

    >>> from airflow_hive_opt.planner.rules.example import filters_after
    >>> filters_after(fold_constants, "SELECT key FROM src WHERE 1 = 1 AND key > '5'")
    ['src: key > '5'']
    >>> filters_after(fold_constants, "SELECT key FROM src WHERE 1 = 2 AND key > '5'")
    ['src: false']

Source: Hive's ConstantPropagate, as far as it decides which filters are left.
"""

from __future__ import annotations

from airflow_hive_opt.planner.hive.operators import Filter, OperatorGraph, remove
from airflow_hive_opt.planner.hive.syntax import Call, Column, Constant, Expression

TRUE = Constant("true", "boolean")
FALSE = Constant("false", "boolean")


def fold_constants(graph: OperatorGraph) -> None:
    """Folds every Filter; one that is always true goes."""
    if not graph.settings.is_on("hive.optimize.constant.propagation"):
        return
    for operator in graph.operators():
        if isinstance(operator, Filter) and not operator.sampling:
            operator.predicate = folded(operator.predicate)
            if not operator.predicate:
                remove(operator)


def folded(conjuncts: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The conjuncts that are left; ``(FALSE,)`` where they can't all be true."""
    found: list[Expression] = []
    for conjunct in conjuncts:
        value = _fold(conjunct)
        if value == TRUE:
            continue
        if value in (FALSE, Constant("null", "void")):
            return (FALSE,)
        found.append(value)
    return tuple(dict.fromkeys(found))


def _has_column(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return any(_has_column(argument) for argument in expression.arguments)
    return isinstance(expression, Column)


def _fold(expression: Expression) -> Expression:
    """The constant that an expression is, as far as Hive's comparisons go; else itself."""
    if not isinstance(expression, Call):
        return expression
    arguments = [_fold(argument) for argument in expression.arguments]
    if expression.name == "and":
        left = [part for part in arguments if part != TRUE]
        return FALSE if FALSE in left else TRUE if not left else expression
    if expression.name == "or":
        left = [part for part in arguments if part != FALSE]
        return TRUE if TRUE in left else FALSE if not left else expression
    if expression.name == "when" and arguments[1:] == [TRUE, FALSE]:
        return Call("nvl", (expression.arguments[0], FALSE))
    if not all(isinstance(part, Constant) for part in arguments):
        return expression
    constants = [part for part in arguments if isinstance(part, Constant)]
    if expression.name == "not" and constants[0] in (TRUE, FALSE):
        return FALSE if constants[0] == TRUE else TRUE
    if expression.name in ("isnull", "isnotnull"):
        null = constants[0].type == "void"
        return TRUE if null == (expression.name == "isnull") else FALSE
    if len(constants) == 2 and all(part.type != "void" for part in constants):
        return _compared(expression.name, constants[0], constants[1]) or expression
    return expression


def _compared(name: str, first: Constant, second: Constant) -> Constant | None:
    left, right = _value(first), _value(second)
    if left is None or right is None:
        return None
    if isinstance(left, float) != isinstance(right, float):
        try:
            left, right = float(left), float(right)
        except ValueError:
            return None
    order = (left > right) - (left < right)  # type: ignore[operator]
    truth = {
        "=": order == 0,
        "<=>": order == 0,
        "<>": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }.get(name)
    return None if truth is None else TRUE if truth else FALSE


def _value(constant: Constant) -> str | float | None:
    if constant.type == "string":
        return constant.text[1:-1]
    try:
        return float(constant.text.rstrip("LSYlsyBDbd"))
    except ValueError:
        return None
