"""Which tables a statement names, by its text alone: no catalog is asked, no view opened."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.planner.errors import PlanError
from airflow_hive_opt.planner.parse import parse
from airflow_hive_opt.planner.script import split_settings


@dataclass(frozen=True)
class Tables:
    """``database.table``, or ``catalog.database.table``, of what is read and what is written.

    Lower case, sorted.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def tables_of(script: str, database: str = "default") -> Tables:
    """The tables and views that a statement names; CTEs are none.

    ``database`` is that of names without one. Raises
    :class:`~airflow_hive_opt.planner.errors.PlanError` where the text can't be parsed.

    >>> tables_of("INSERT OVERWRITE TABLE dw.r WITH f AS (SELECT * FROM F) SELECT * FROM f, d.k")
    Tables(reads=('d.k', 'default.f'), writes=('dw.r',))
    """
    tree = parse(split_settings(script)[1])
    targets = list(_targets(tree))
    reads = {
        _name(table, database)
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)  # a function in FROM is no table
        and not any(table is target for target in targets)
        and not _names_a_cte(table)
    }
    writes = {_name(table, database) for table in targets}
    return Tables(tuple(sorted(reads)), tuple(sorted(writes)))


def names_its_partition(sql: str) -> bool:
    """Whether a statement inserts into a partition whose values are all written out.

    >>> names_its_partition("INSERT OVERWRITE TABLE r PARTITION (ds = 'a') SELECT 1")
    True
    >>> names_its_partition("INSERT OVERWRITE TABLE r PARTITION (ds = 'a', hour) SELECT 1, 2")
    False
    """
    try:
        tree = parse(sql)
    except (PlanError, RecursionError):
        return False
    partitions = [target.args.get("partition") for target in _targets(tree)]
    return any(
        found is not None and all(isinstance(each, exp.EQ) for each in found.expressions)
        for found in partitions
    )


def _targets(tree: exp.Expr) -> Iterator[exp.Table]:
    for statement in tree.find_all(exp.Insert, exp.Create):
        target = statement.this
        if isinstance(target, exp.Schema):  # with a list of columns
            target = target.this
        if isinstance(target, exp.Table):
            yield target


def _names_a_cte(table: exp.Table) -> bool:
    """Whether an enclosing WITH defines the name, before where it stands."""
    if table.db:
        return False
    inside: exp.Expr = table
    while (around := inside.parent) is not None:
        for cte in _visible(around, inside):
            if cte.alias.lower() == table.name.lower():
                return True
        inside = around
    return False


def _visible(around: exp.Expr, inside: exp.Expr) -> list[exp.Expr]:
    """The CTEs that ``around`` defines for ``inside``: for a CTE, those before it."""
    if isinstance(around, exp.With):
        return list(itertools.takewhile(lambda cte: cte is not inside, around.expressions))
    defined = around.args.get("with_")
    return defined.expressions if defined is not None and defined is not inside else []


def _name(table: exp.Table, database: str) -> str:
    parts = (table.catalog, table.db or database, table.name)
    return ".".join(filter(None, parts)).lower()
