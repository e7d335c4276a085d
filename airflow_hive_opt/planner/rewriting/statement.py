"""What must hold of the whole statement before any part of it is rewritten."""

from __future__ import annotations

import re

from sqlglot import exp

from airflow_hive_opt.planner.catalog import Catalog
from airflow_hive_opt.planner.conditions import is_deterministic
from airflow_hive_opt.planner.rewriting.refusals import Refusal, Refused

_FLOAT = re.compile(r"float|double|real")
# Their value depends on the order of rows if they are over floating-point numbers.
_ORDERED = (
    exp.Sum,
    exp.Avg,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.Variance,
    exp.VariancePop,
    exp.Corr,
    exp.CovarPop,
    exp.CovarSamp,
)


def require_repeatable(sql: str, tree: exp.Expr, catalog: Catalog) -> None:
    """Raises :class:`Refused` where another plan for the same rows could give others."""
    if not isinstance(tree, exp.Query | exp.Insert | exp.Create):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if any(not mark.name for mark in tree.find_all(exp.Placeholder)):
        raise Refused(Refusal.FORM_NOT_KNOWN)  # moved text would take another's value
    if not is_deterministic(sql) or any(tree.find_all(exp.TableSample)):
        raise Refused(Refusal.NOT_DETERMINISTIC)
    outermost = tree if isinstance(tree, exp.Query) else tree.args.get("expression")
    for limit in tree.find_all(exp.Limit, exp.Fetch, exp.Offset):
        if limit.parent is not outermost or not outermost or not outermost.args.get("order"):
            raise Refused(Refusal.NOT_DETERMINISTIC)
    if _sums_of_floats(tree, catalog):
        raise Refused(Refusal.FLOATING_POINT)


def _sums_of_floats(tree: exp.Expr, catalog: Catalog) -> bool:
    """Whether a sum may be of floating-point numbers, by the names of the columns in it."""
    floating = set()
    for node in tree.find_all(exp.Table):
        table = catalog.table(exp.table_name(node)) if 1 <= len(node.parts) <= 2 else None
        for column in table.all_columns if table else ():
            if _FLOAT.match(column.type):
                floating.add(column.name)
    grown = True
    while grown:  # names given to what is computed of them
        grown = False
        for alias in tree.find_all(exp.Alias):
            name = alias.alias.lower()
            if name not in floating and _floating(alias.this, floating):
                floating.add(name)
                grown = True
    return any(
        _floating(argument, floating)
        for aggregate in tree.find_all(*_ORDERED)
        for argument in aggregate.iter_expressions()
    )


def _floating(node: exp.Expr, names: set[str]) -> bool:
    for part in node.walk(prune=lambda inner: isinstance(inner, exp.Count)):
        if isinstance(part, exp.Column) and part.name.lower() in names:
            return True
        if isinstance(part, exp.Avg | exp.Div | exp.Anonymous | exp.Cast):
            return True
        is_number = isinstance(part, exp.Literal) and not part.is_string
        if is_number and not re.fullmatch(r"[\d.]+", part.name):
            return True
    return False
