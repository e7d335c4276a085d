"""Which statements of a script must not run again, after a later one has failed.

A second run of all statements must leave the tables as the first would have left them. So a
statement may run again if it replaces what it writes, as INSERT OVERWRITE does, and if everything
that the statements read is as it was. What is not understood must not run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.statement.parse import tree_of
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.tables import mentions, temporary_view

_READING = (
    *(exp.Query, exp.Analyze, exp.Cache, exp.Comment, exp.Declare, exp.Describe, exp.Grant),
    *(exp.Refresh, exp.Set, exp.Uncache, exp.Use, exp.Values),
)
_REPLACING = (exp.Insert, exp.MultitableInserts, exp.Delete)
_DEFINING = (exp.Alter, exp.Drop, exp.TruncateTable)
_WITHOUT_DATA = ("FUNCTION", "DATABASE", "SCHEMA")
# The first words of statements that only sqlglot's fallback reads.
_COMMANDS = (
    *("ADD", "CLEAR", "COMMENT", "DESCRIBE", "EXPLAIN", "GRANT", "LIST", "REFRESH", "RESET"),
    *("REVOKE", "SET", "SHOW"),
)


@dataclass(frozen=True)
class RanStatement:
    """A statement that has run; ``scanned`` are the tables that it is known to read."""

    sql: str
    scanned: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Effect:
    """The names of a statement; ``views`` are temporary views, ``tables`` are no views."""

    reads: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()


def must_not_run_again(ran: Sequence[RanStatement]) -> tuple[int, ...]:
    """The positions of the statements whose second run might leave other tables, from 0.

    A name that no scan confirms may be a view of any table.

    >>> [must_not_run_again([RanStatement(sql)]) for sql in ("INSERT INTO r SELECT 1", "SELECT 1")]
    [(0,), ()]
    >>> once = RanStatement("INSERT OVERWRITE r SELECT * FROM a", ("dw.a",))
    >>> must_not_run_again([once]), must_not_run_again([once, RanStatement("TRUNCATE TABLE a")])
    ((), (1,))
    """
    found = [_effect(each.sql) for each in ran]
    known = [effect for effect in found if effect is not None]
    scanned = {name.lower() for each in ran for name in each.scanned}
    reads = _all(effect.reads for effect in known)
    views = _all(effect.views for effect in known)
    tables = scanned | _all(effect.tables for effect in known)
    unclear = any(name not in views and not _may_name(name, tables) for name in reads)
    # d.r.snapshots may be the metadata of d.r
    every = reads | scanned | {name.rpartition(".")[0] for name in reads if name.count(".") > 1}
    return tuple(
        at
        for at, effect in enumerate(found)
        if effect is None or any(unclear or _may_name(name, every) for name in effect.changes)
    )


def _effect(sql: str) -> _Effect | None:
    """What the statement reads and changes; ``None`` if it must run once or is not understood."""
    tree = tree_of(split_settings(sql)[1])
    if tree is None:
        return None
    if isinstance(tree, exp.Command):
        return _of_command(tree)
    if isinstance(tree, _READING):  # USE and the like name things, and only a query reads tables
        query = tree.find(exp.Query)
        return _Effect(_names(mentions(query).reads)) if query else _Effect()
    named = mentions(tree)
    reads, targets = _names(named.reads), _names((*named.targets, *named.changed))
    if view := temporary_view(sql):
        return _Effect(reads, views=frozenset((view,)))
    if isinstance(tree, _DEFINING):  # these names are all that it changes
        of_tables = tree.args.get("kind") in (None, "TABLE", "VIEW")
        return _Effect(changes=reads | targets) if of_tables else _without_data(tree)
    if isinstance(tree, exp.Create):
        if tree.kind not in ("TABLE", "VIEW"):
            return _without_data(tree)
        tables = targets if tree.kind == "TABLE" else frozenset()
        return _Effect(reads, targets, tables)
    inserts = list(tree.find_all(exp.Insert))
    replaces = isinstance(tree, _REPLACING) and all(
        insert.args.get("overwrite") and not isinstance(insert.this, exp.Directory)
        for insert in inserts
    )
    if not replaces or any("/" in name for name in targets):  # files may be those of any table
        return None
    return _Effect(reads, targets, targets)


def _of_command(tree: exp.Command) -> _Effect | None:
    word = str(tree.this).upper().partition(" ")[0]
    has_query = "SELECT" in str(tree.expression).upper()
    return _Effect() if word in _COMMANDS and (word == "EXPLAIN" or not has_query) else None


def _without_data(tree: exp.Expr) -> _Effect | None:
    """CREATE and DROP of what is no table; DROP DATABASE may drop tables."""
    kind = str(tree.args.get("kind"))
    drops = isinstance(tree, exp.Drop) and kind != "FUNCTION"
    return _Effect() if kind in _WITHOUT_DATA and not drops else None


def _names(tables: Iterable[exp.Table]) -> frozenset[str]:
    return frozenset(".".join(part.name for part in table.parts).lower() for table in tables)


def _all(names: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*names)


def _may_name(name: str, tables: Iterable[str]) -> bool:
    """Whether one of ``tables`` may be the table ``name``: databases may be left out."""
    return any(
        f".{name}".endswith(f".{each}") or f".{each}".endswith(f".{name}") for each in tables
    )
