"""Finds the tables that a statement names, from its text alone.

No catalog is read, and no view is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from airflow_hive_opt.statement.parse import parse, tree_of
from airflow_hive_opt.statement.script import split_settings

_DEFINITIONS = (
    *(exp.Alter, exp.Comment, exp.Create, exp.Describe, exp.Drop, exp.Grant, exp.Refresh, exp.Set),
    *(exp.TruncateTable, exp.Use),
)
_WRITING = (exp.Insert, exp.Create)
_CHANGING = (exp.Merge, exp.Update, exp.Delete)
# Each alternative of a comment ends in one way only, so that the time is linear.
COMMENTS = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/)*"
"""A pattern for what may be before a statement's first word."""

_INSERT = re.compile(
    rf"{COMMENTS}(?:INSERT\b|(?:FROM|WITH)\b.*\bINSERT\b)", re.IGNORECASE | re.DOTALL
)
_GLOBAL_TEMPORARY = "global_temp"  # the database of global temporary views
_COMMANDS = ("ALTER", "COMMENT", "GRANT", "MSCK", "REFRESH", "REVOKE", "SHOW")


@dataclass(frozen=True)
class Tables:
    """The tables that a statement reads and writes: ``[catalog.]database.table``, sorted."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def tables_of(script: str, database: str = "default", temporary: Collection[str] = ()) -> Tables:
    """The tables and views that a statement names, without its CTEs and temporary views.

    ``database`` is the database of unqualified names. ``temporary`` are the names of temporary
    views that earlier statements have made, in lower case. Raises
    :class:`~airflow_hive_opt.statement.errors.PlanError` if the text can't be parsed.

    >>> tables_of("INSERT OVERWRITE TABLE dw.r WITH f AS (SELECT * FROM F) SELECT * FROM f, d.k")
    Tables(reads=('d.k', 'default.f'), writes=('dw.r',))
    >>> tables_of("MERGE INTO lake.dw.r USING dw.s ON r.k = s.k WHEN MATCHED THEN DELETE")
    Tables(reads=('dw.s', 'lake.dw.r'), writes=('lake.dw.r',))
    >>> tables_of("SELECT * FROM lake.a.b.t, lake.shop.orders.files, cat.db.f(1)").reads
    ('lake.a.b.t', 'lake.shop.orders.files')
    >>> tables_of("WITH RECURSIVE a AS (SELECT 1 UNION SELECT n FROM a) SELECT * FROM a").reads
    ()
    """
    found = _mentions(split_settings(script)[1])
    own = temporary_view(script)
    hidden = {*temporary, own} if own else temporary
    writes = _lasting((*found.targets, *found.changed), hidden)
    return Tables(
        tuple(sorted({_name(table, database) for table in _lasting(found.reads, temporary)})),
        tuple(sorted({_name(table, database) for table in writes})),
    )


def temporary_view(script: str) -> str | None:
    """The name of the temporary view that the statement makes, in lower case; else ``None``.

    >>> temporary_view("CREATE OR REPLACE TEMPORARY VIEW Mine AS SELECT 1"), temporary_view("SET a")
    ('mine', None)
    """
    tree = tree_of(split_settings(script)[1])
    if not isinstance(tree, exp.Create) or tree.kind != "VIEW":
        return None
    if tree.find(exp.TemporaryProperty) is None:
        return None
    return next((target.name.lower() for target in _targets([tree])), None)


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
        for table in _mentions(sql).reads
    )


def is_query(sql: str) -> bool:
    """Whether the statement only reads; false if its text can't be parsed.

    >>> is_query("SELECT 1 UNION ALL SELECT 2"), is_query("WITH a AS (SELECT 1) FROM a SELECT *")
    (True, True)
    >>> is_query("FROM a INSERT INTO b SELECT 1"), is_query("MAP x USING 'cat' FROM a")
    (False, False)
    """
    return isinstance(tree_of(sql), exp.Query)


def may_insert(sql: str) -> bool:
    r"""Whether the text begins as an INSERT does; it need not be one, or be correct.

    >>> may_insert("-- daily\nINSERT INTO r SELECT 1"), may_insert("FROM a INSERT INTO b SELECT 1")
    (True, True)
    >>> may_insert("SELECT 'INSERT INTO r'"), may_insert("CREATE TABLE r AS SELECT 1")
    (False, False)
    """
    return _INSERT.match(sql) is not None


def writes_rows(sql: str) -> bool:
    """Whether the statement computes rows and writes them; false if its text can't be parsed.

    >>> writes_rows("INSERT INTO r SELECT 1"), writes_rows("CREATE TABLE r AS SELECT 1 FROM u")
    (True, True)
    >>> writes_rows("DELETE FROM r WHERE a = 1"), writes_rows("SELECT 1")
    (True, False)
    >>> writes_rows("CREATE VIEW v AS SELECT 1"), writes_rows("FROM a INSERT INTO b SELECT 1")
    (False, True)
    """
    tree = tree_of(sql)
    return may_insert(sql) or (isinstance(tree, (*_WRITING, *_CHANGING)) and not reads_no_rows(sql))


@dataclass(frozen=True)
class Mentions:
    """The nodes of a statement that name tables and views, in the order of the text.

    ``reads`` has no names of CTEs. ``targets`` are of INSERT and CREATE, ``changed`` of MERGE,
    UPDATE and DELETE; the latter are read too.
    """

    reads: tuple[exp.Table, ...]
    targets: tuple[exp.Table, ...]
    changed: tuple[exp.Table, ...]


def mentions(tree: exp.Expr) -> Mentions:
    """Finds the mentions in one walk: the trees of long statements have many nodes."""
    nodes = list(tree.find_all(exp.Table, exp.With, *_WRITING, *_CHANGING, bfs=False))
    targets = tuple(_targets(node for node in nodes if isinstance(node, _WRITING)))
    changed = tuple(node.this for node in nodes if isinstance(node, _CHANGING))
    not_read = {id(target) for target in targets}
    withs = {id(node): _Definitions(node) for node in nodes if isinstance(node, exp.With)}
    reads = tuple(
        table
        for table in nodes
        if isinstance(table, exp.Table)
        and id(table) not in not_read
        and is_name(table)
        and not (withs and _names_a_cte(table, withs))
    )
    return Mentions(reads, targets, tuple(node for node in changed if isinstance(node, exp.Table)))


@lru_cache(maxsize=8)
def _mentions(sql: str) -> Mentions:
    return mentions(parse(sql))


def reads_no_rows(sql: str) -> bool:
    """Whether the statement only defines or shows something; false if it can't be parsed.

    >>> reads_no_rows("CREATE TABLE t (a INT)"), reads_no_rows("CREATE TABLE t AS SELECT 1 FROM u")
    (True, False)
    """
    tree = tree_of(sql)
    if isinstance(tree, exp.Command):
        return str(tree.this).upper() in _COMMANDS
    return isinstance(tree, _DEFINITIONS) and (
        tree.find(exp.Query) is None or (isinstance(tree, exp.Create) and tree.kind == "VIEW")
    )


def is_name(table: exp.Table) -> bool:
    """Whether it names a table or view, not a function; sqlglot nests the parts from the third."""
    return all(isinstance(part, exp.Identifier) for part in table.parts)


def _targets(statements: Iterable[exp.Expr]) -> Iterator[exp.Table]:
    for statement in statements:
        target = statement.this
        if isinstance(target, exp.Schema):  # a table with a column list
            target = target.this
        if isinstance(target, exp.Table):
            yield target


class _Definitions:
    """The CTEs of one WITH: where each name is first defined, and where each CTE is."""

    def __init__(self, with_: exp.With) -> None:
        self.recursive = bool(with_.args.get("recursive"))
        self.names: dict[str, int] = {}
        self.places: dict[int, int] = {}
        for place, cte in enumerate(with_.expressions):
            self.names.setdefault(cte.alias.lower(), place)
            self.places[id(cte)] = place

    def visible(self, name: str, inside: exp.Expr) -> bool:
        """Whether ``inside`` can read a CTE of that name.

        A CTE can read those before it, and with RECURSIVE itself.
        """
        place = self.names.get(name)
        end = self.places.get(id(inside), len(self.places))
        return place is not None and place < end + self.recursive


def _names_a_cte(table: exp.Table, withs: Mapping[int, _Definitions]) -> bool:
    """Whether an enclosing WITH defines the name before the table reference."""
    if table.db:
        return False
    name = table.name.lower()
    inside: exp.Expr = table
    while (around := inside.parent) is not None:
        # a query's own WITH, or the WITH around a CTE
        with_ = around if isinstance(around, exp.With) else around.args.get("with_")
        if with_ is not None and with_ is not inside and withs[id(with_)].visible(name, inside):
            return True
        inside = around
    return False


def _lasting(tables: Iterable[exp.Table], temporary: Collection[str]) -> Iterator[exp.Table]:
    """Those that are no temporary views."""
    for table in tables:
        is_temporary = not table.db and table.name.lower() in temporary
        if not is_temporary and table.db.lower() != _GLOBAL_TEMPORARY:
            yield table


def _name(table: exp.Table, database: str) -> str:
    names = [part.name for part in table.parts]
    return ".".join(names if len(names) > 1 else filter(None, [database, *names])).lower()
