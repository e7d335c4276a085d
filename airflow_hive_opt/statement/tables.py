"""Finds the tables that a statement names, from its text alone.

No catalog is read, and no view is expanded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.script import split_settings


@dataclass(frozen=True)
class Tables:
    """The tables that a statement reads and writes, in lower case, sorted.

    A name is ``database.table`` or ``catalog.database.table``.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def tables_of(script: str, database: str = "default") -> Tables:
    """The tables and views that a statement names, without its CTEs.

    ``database`` is the database of unqualified names. Raises
    :class:`~airflow_hive_opt.statement.errors.PlanError` if the text can't be parsed.

    >>> tables_of("INSERT OVERWRITE TABLE dw.r WITH f AS (SELECT * FROM F) SELECT * FROM f, d.k")
    Tables(reads=('d.k', 'default.f'), writes=('dw.r',))
    >>> tables_of("MERGE INTO lake.dw.r USING dw.s ON r.k = s.k WHEN MATCHED THEN DELETE")
    Tables(reads=('dw.s', 'lake.dw.r'), writes=('lake.dw.r',))
    """
    tree = parse(split_settings(script)[1])
    reads = {_name(table, database) for table in _read(tree)}
    targets = list(_targets(tree))
    changed = (node.this for node in tree.find_all(exp.Merge, exp.Update, exp.Delete))
    targets += [table for table in changed if isinstance(table, exp.Table)]
    writes = {_name(table, database) for table in targets}
    return Tables(tuple(sorted(reads)), tuple(sorted(writes)))


@dataclass(frozen=True)
class Reference:
    """A place where a statement reads a table or view; ``versioned`` if it names a version."""

    name: str
    versioned: bool


def references(sql: str) -> tuple[Reference, ...]:
    """Every place where a statement reads a table or view; not those that name a CTE.

    Names are in the statement's case. The target of MERGE, UPDATE and DELETE is read too. Raises
    :class:`~airflow_hive_opt.statement.errors.PlanError` if the text can't be parsed.

    >>> [str(each) for each in references("INSERT INTO r SELECT * FROM L.a VERSION AS OF 1, b")]
    ["Reference(name='L.a', versioned=True)", "Reference(name='b', versioned=False)"]
    """
    return tuple(
        Reference(".".join(part.name for part in table.parts), bool(table.args.get("version")))
        for table in _read(parse(sql))
    )


def is_query(sql: str) -> bool:
    """Whether the statement only reads; false if its text can't be parsed.

    >>> is_query("SELECT 1 UNION ALL SELECT 2"), is_query("WITH a AS (SELECT 1) FROM a SELECT *")
    (True, True)
    >>> is_query("FROM a INSERT INTO b SELECT 1"), is_query("MAP x USING 'cat' FROM a")
    (False, False)
    """
    try:
        return isinstance(parse(sql), exp.Query)
    except (PlanError, RecursionError):
        return False


def table_of_a_partition(sql: str) -> str | None:
    """The table into which a statement inserts one static partition, or ``None``.

    A static partition has a literal value for every partition column that PARTITION names.

    >>> table_of_a_partition("INSERT OVERWRITE TABLE dw.r PARTITION (ds = 'a') SELECT 1")
    'dw.r'
    >>> table_of_a_partition("INSERT OVERWRITE TABLE r PARTITION (ds = 'a', hour) SELECT 1, 2")
    """
    if "partition" not in sql.lower():  # avoids parsing most statements
        return None
    try:
        tree = parse(sql)
    except (PlanError, RecursionError):
        return None
    for target in _targets(tree):
        partition = target.args.get("partition")
        if partition and all(isinstance(each, exp.EQ) for each in partition.expressions):
            return exp.table_name(target)
    return None


def _read(tree: exp.Expr) -> Iterator[exp.Table]:
    """Every node that reads a table or view."""
    targets = list(_targets(tree))
    for table in tree.find_all(exp.Table, bfs=False):
        named = isinstance(table.this, exp.Identifier)  # a function in FROM is not a table
        if named and not any(table is target for target in targets) and not _names_a_cte(table):
            yield table


def _targets(tree: exp.Expr) -> Iterator[exp.Table]:
    for statement in tree.find_all(exp.Insert, exp.Create):
        target = statement.this
        if isinstance(target, exp.Schema):  # a table with a column list
            target = target.this
        if isinstance(target, exp.Table):
            yield target


def _names_a_cte(table: exp.Table) -> bool:
    """Whether an enclosing WITH defines the name before the table reference."""
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
    """The CTEs of ``around`` that ``inside`` can read; a CTE can read only those before it."""
    if isinstance(around, exp.With):
        return list(itertools.takewhile(lambda cte: cte is not inside, around.expressions))
    defined = around.args.get("with_")
    return defined.expressions if defined is not None and defined is not inside else []


def _name(table: exp.Table, database: str) -> str:
    parts = (table.catalog, table.db or database, table.name)
    return ".".join(filter(None, parts)).lower()
