"""Removes conjuncts that constants decide, and propagates constants upwards.

``1 = 1`` is removed; ``1 = 2`` makes the whole condition false. The constant that a filter gives
a column replaces the column in every filter and key above it:

    >>> from airflow_hive_opt.hive.example import filters_after
    >>> filters_after(fold_constants, "SELECT key FROM src WHERE 1 = 1 AND key > '5'")
    ['src: key > '5'']
    >>> sql = "SELECT key FROM (SELECT key FROM src WHERE key = '66') t WHERE key > '77'"
    >>> filters_after(fold_constants, sql)
    ['src: false']

Conjuncts of one filter do not fold each other. A join propagates constants only if all its
conditions are inner joins.

Source: Hive's ConstantPropagate.
"""

from __future__ import annotations

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.syntax import Call, Column, Constant, Expression, rewritten
from airflow_hive_opt.hive.rules.constants import FALSE, NULL, TRUE, fold

_Known = dict[str, Constant]


def fold_constants(graph: ops.OperatorGraph) -> None:
    """Folds filters and the keys of ReduceSinks, and removes filters that are always true."""
    if not graph.settings.is_on("hive.optimize.constant.propagation"):
        return
    known: dict[int, _Known] = {}
    for operator in ops.topological(graph.scans):
        known[id(operator)] = _visit(operator, [known[id(each)] for each in operator.parents])
        if isinstance(operator, ops.Filter) and not operator.predicate:
            ops.remove(operator)


def folded(conjuncts: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Returns the remaining conjuncts; ``(FALSE,)`` if one of them is never true."""
    found: list[Expression] = []
    for conjunct in conjuncts:
        value = fold(conjunct)
        if value in (FALSE, NULL):
            return (FALSE,)
        if value != TRUE:
            found.append(value)
    return tuple(dict.fromkeys(found))


def _visit(operator: ops.Operator, inputs: list[_Known]) -> _Known:
    """Folds an operator and returns the constants among its output columns."""
    below = inputs[0] if inputs else {}
    if isinstance(operator, ops.Filter):
        return _through_filter(operator, below)
    if isinstance(operator, ops.ReduceSink):
        child = operator.children[0] if operator.children else None
        if not isinstance(child, ops.Join) or _all_inner(child):
            operator.keys = _with(operator.keys, below)
            operator.partition_keys = _with(operator.partition_keys, below)
        return below
    if isinstance(operator, ops.Join):
        return _through_join(operator, inputs) if _all_inner(operator) else {}
    if isinstance(operator, ops.Union):
        names = [info.internal for info in operator.columns]
        return {
            name: inputs[0][name]
            for name in names
            if all(each.get(name) is not None for each in inputs)
            and len({each[name] for each in inputs}) == 1
        }
    if isinstance(operator, (ops.Select, ops.GroupBy)):
        return _computed(operator, below)
    return below if isinstance(operator, ops.Limit) else {}


def _through_filter(operator: ops.Filter, below: _Known) -> _Known:
    operator.predicate = folded(tuple(_with_constants(part, below) for part in operator.predicate))
    operator.generated &= frozenset(operator.predicate)
    return below | _assigned(operator.predicate)


def _with_constants(expression: Expression, known: _Known) -> Expression:
    return rewritten(
        expression, lambda part: known.get(part.name) if isinstance(part, Column) else None
    )


def _with(keys: tuple[Expression, ...], known: _Known) -> tuple[Expression, ...]:
    return tuple(fold(_with_constants(key, known)) for key in keys)


def _assigned(predicate: tuple[Expression, ...]) -> _Known:
    """Returns the columns to which a filter gives one value: ``key = '66'``, ``key IS NULL``."""
    found: _Known = {}
    for part in predicate:
        if not isinstance(part, Call):
            continue
        if part.name == "isnull" and isinstance(part.arguments[0], Column):
            found[part.arguments[0].name] = NULL
        if part.name == "=":
            left, right = part.arguments
            if isinstance(right, Column):
                left, right = right, left
            if (
                isinstance(left, Column)
                and isinstance(right, Constant)
                and _same_type(left.type, right)
            ):
                found[left.name] = right
    return found


def _same_type(kind: str, constant: Constant) -> bool:
    """Tells whether both are text or neither is. A number is not propagated to a text column."""
    return (kind in ("string", "varchar", "char")) == (constant.type == "string")


def _all_inner(join: ops.Join) -> bool:
    return all(condition.kind == "INNER" for condition in join.conditions)


def _through_join(join: ops.Join, inputs: list[_Known]) -> _Known:
    found: _Known = {}
    for name, expression in (join.expressions or {}).items():
        tag = join.sources[name]
        if isinstance(expression, Column) and expression.name in inputs[tag]:
            found[name] = inputs[tag][expression.name]
    return found


def _computed(operator: ops.Operator, below: _Known) -> _Known:
    if operator.expressions is None:
        return below
    found: _Known = {}
    for name, expression in operator.expressions.items():
        value = fold(_with_constants(expression, below)) if expression is not None else None
        if isinstance(value, Constant):
            found[name] = value
    return found
