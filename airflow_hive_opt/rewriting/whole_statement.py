"""Conditions that the whole statement must fulfil before any part of it is rewritten."""

from __future__ import annotations

import re

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import is_deterministic
from airflow_hive_opt.pruning.subqueries import has_positions
from airflow_hive_opt.rewriting.expressions import AVERAGED
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.catalog import Catalog

# Without string: Spark sums text as floating-point numbers.
_EXACT = re.compile(r"(tiny|small|big)?int(eger)?|decimal\(.*|decimal|boolean")
_EXACT_CAST = re.compile(r"(tiny|small|big)?int(eger)?\b|decimal\b", re.IGNORECASE)
# Functions whose value depends on the order of rows: of equal rows, or of floating-point additions.
_IN_ORDER = re.compile(
    r"\b(?:row_number|ntile|lag|lead|nth_value|mean|median|std|stddev\w*|variance|var_\w+|corr"
    r"|covar_\w+|regr_\w+|skewness|kurtosis|try_sum|try_avg|histogram_numeric|\w*sketch\w*)\s*\("
    r"|\brows\s+(?:between|unbounded|current|\d)",
    re.IGNORECASE,
)
_OF_PARTS = (
    *(exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Coalesce, exp.Abs, exp.Distinct),
    *(exp.Sum, exp.Min, exp.Max),
)


def require_repeatable(sql: str, tree: exp.Expr, catalog: Catalog) -> None:
    """Raises :class:`Refused` if another plan could return different rows for the same data."""
    if not is_run(tree):
        raise Refused(Refusal.FORM_NOT_KNOWN)
    if has_positions(tree):
        raise Refused(Refusal.FORM_NOT_KNOWN)  # a moved marker would get another value
    if not is_deterministic(sql) or any(tree.find_all(exp.TableSample)):
        raise Refused(Refusal.NOT_DETERMINISTIC)
    outermost = tree if isinstance(tree, exp.Query) else tree.args.get("expression")
    for limit in tree.find_all(exp.Limit, exp.Fetch, exp.Offset):
        if limit.parent is not outermost or not outermost or not outermost.args.get("order"):
            raise Refused(Refusal.NOT_DETERMINISTIC)
    if _IN_ORDER.search(sql):
        raise Refused(Refusal.ORDER_OF_ROWS)
    if _sums_of_floats(tree, catalog):
        raise Refused(Refusal.FLOATING_POINT)


def is_run(tree: exp.Expr) -> bool:
    """Whether the statement runs its query; CREATE VIEW or FUNCTION only stores it as text."""
    if isinstance(tree, exp.Create):
        return str(tree.args.get("kind")).upper() == "TABLE"
    return isinstance(tree, (exp.Query, exp.Insert))


def _sums_of_floats(tree: exp.Expr, catalog: Catalog) -> bool:
    """Whether a sum or an average may depend on the order of rows, by its columns' names.

    That is so for floating-point numbers, and for averages of 64-bit integers.
    """
    types: dict[str, set[str]] = {}
    for node in tree.find_all(exp.Table):
        table = catalog.table(exp.table_name(node)) if node.name else None
        for column in table.all_columns if table else ():
            types.setdefault(column.name, set()).add(column.type)
    exact = {name for name, found in types.items() if all(map(_EXACT.fullmatch, found))}
    wide = {name for name in exact if not all(map(AVERAGED.fullmatch, types[name]))}
    aliases = [(alias.alias.lower(), alias.this) for alias in tree.find_all(exp.Alias)]
    exact |= {name for name, _ in aliases} - types.keys()
    shrunk = True
    while shrunk:  # removes aliases of expressions on floating-point numbers
        floating = {name for name, value in aliases if name in exact and not _exact(value, exact)}
        exact -= floating
        shrunk = bool(floating)
    return any(
        not _exact(aggregate.this, exact) for aggregate in tree.find_all(exp.Sum, exp.Avg)
    ) or any(
        column.name.lower() in wide
        for average in tree.find_all(exp.Avg)
        for column in average.find_all(exp.Column)
    )


def _exact(node: exp.Expr, names: set[str]) -> bool:
    """Whether a number is an integer or a decimal."""
    if isinstance(node, exp.Column):
        return node.name.lower() in names
    if isinstance(node, exp.Literal):
        return not node.is_string and re.fullmatch(r"[\d.]+", node.name) is not None
    if isinstance(node, exp.Cast):
        return _EXACT_CAST.match(node.to.sql("spark")) is not None
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        return all(_exact(each, names) for each in [*branches, *([default] if default else [])])
    if isinstance(node, exp.If):
        given = (node.args.get("true"), node.args.get("false"))
        return all(_exact(each, names) for each in given if each is not None)
    if isinstance(node, _OF_PARTS):
        return all(_exact(each, names) for each in node.iter_expressions())
    return isinstance(node, (exp.Count, exp.Null, exp.Boolean))
