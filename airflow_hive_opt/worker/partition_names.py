"""The partitions of a table that fulfil conditions, by their names alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.conditions import is_deterministic
from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.worker.database import database, load, texts
from airflow_hive_opt.worker.keys import Keys
from airflow_hive_opt.worker.tables import load_names
from airflow_hive_opt.worker.translation.conditions import Conditions
from airflow_hive_opt.worker.translation.expressions import Expressions
from airflow_hive_opt.worker.translation.nodes import doubtful_texts
from airflow_hive_opt.worker.translation.queries import Queries
from airflow_hive_opt.worker.translation.relations import (
    QueryRelation,
    Relation,
    Scope,
    TableRelation,
)
from airflow_hive_opt.worker.translation.translate import tree_of
from airflow_hive_opt.worker.translation.typed import Typed
from airflow_hive_opt.worker.translation.work import Notes, Source, Work
from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import NotUnderstood, Unanswered

if TYPE_CHECKING:
    import duckdb

_NAMES, _KEYS = "partition_names", "k"


@dataclass(frozen=True)
class Fulfilling:
    """The partitions; ``exact`` is false if there may be some that do not fulfil the conditions.

    ``left_out`` says that a condition was left out, with nothing weaker in its place. ``functions``
    are the functions that the conditions call, by their names in the statement. They must be
    Spark's own.
    """

    partitions: list[Partition]
    exact: bool
    left_out: bool
    functions: frozenset[str]


def fulfilling(
    table: Table,
    layers: Sequence[Layer],
    partitions: Sequence[Partition],
    conditions: Sequence[str],
    parameters: Mapping[str, object],
    keys: Keys | None = None,
) -> Fulfilling | None:
    """The partitions for which all ``conditions`` are true, together with one of the ``keys``.

    Includes every partition whose name does not determine its values, of columns of types that the
    worker evaluates. A condition that can't be evaluated exactly is left out. ``None`` if the
    conditions are not deterministic. Raises :class:`Unanswered`.
    """
    texts = [*conditions, *(text for layer in layers for _, text in layer.columns)]
    if not all(map(is_deterministic, texts)):
        return None
    kept: list[str] = []

    def stays(condition: str) -> bool:
        """Keeps partitions by a condition that reads no key."""
        reads_keys = f"{_KEYS}." in condition
        if not reads_keys:
            kept.append(condition)
        return not reads_keys

    work = Work("", _no_table, parameters, stays=stays)
    source = Source(_NAMES, {column.name: column.type for column in table.partition_columns})
    names = TableRelation(work, source, layers[0].alias)
    seen: TableRelation | QueryRelation = names
    for layer in layers[1:]:
        seen = QueryRelation(work, _LayerQuery(work, seen, layer), layer.alias)
    relations: list[Relation] = [seen, *(_of_keys(keys) if keys is not None else ())]
    try:
        translated = [part for text in conditions for part in _conjuncts(work, text, relations)]
        condition = " AND ".join(translated) or "true"
        skeleton = seen.sql()
    except RecursionError:
        raise Unanswered("a condition on partition columns is nested too deeply") from None
    staying = " OR ".join(["__odd", *kept])
    if keys is None:
        sql = f"SELECT __row FROM {skeleton} WHERE {staying} OR ({condition})"
    else:
        sql = (
            f"SELECT __row FROM {skeleton} SEMI JOIN {_KEYS} ON {condition} "
            f"UNION SELECT __row FROM {skeleton} WHERE {staying}"
        )
    with database() as connection:
        load_names(connection, _NAMES, table, partitions)
        if keys is not None:
            _load_keys(connection, keys)
        rows = connection.execute(sql).fetchall()
        odd = connection.execute(f"SELECT 1 FROM {_NAMES} WHERE __odd LIMIT 1").fetchone()
    found = [partitions[row] for row in sorted({row for (row,) in rows})]
    exact = not (work.left_out or odd) and (keys is None or keys.exact)
    return Fulfilling(found, exact, bool(work.dropped), frozenset(work.functions))


def _conjuncts(work: Work, condition: str, relations: Sequence[Relation]) -> list[str]:
    """The conjuncts of a condition that can be evaluated."""
    try:
        own, where = _parsed(work, f"SELECT 1 FROM t WHERE {condition}")
    except NotUnderstood as why:
        work.leave_out(why)
        return []
    subqueries = Queries(own, {})
    to = Expressions(own, Scope(relations), subqueries)
    return Conditions(to, subqueries, monotone=True).of(where.args["where"].this)


def _no_table(name: str) -> Source:
    raise NotUnderstood(f"the table {name} in a condition")


def _parsed(work: Work, sql: str) -> tuple[Work, exp.Select]:
    """The tree of a text, and a :class:`Work` that shares the state of ``work``."""
    try:
        tree = tree_of(sql)
    except Unanswered as error:
        raise NotUnderstood(f"a condition on partition columns: {error}") from error
    if not isinstance(tree, exp.Select):
        raise NotUnderstood("the form of a condition on partition columns")
    return replace(work, sql=sql, doubtful=doubtful_texts(sql)), tree


class _LayerQuery:
    """A query around the names, whose columns are expressions over the relation below.

    It hands on ``__row`` and ``__odd``.
    """

    def __init__(self, work: Work, below: TableRelation | QueryRelation, layer: Layer) -> None:
        self._work = work
        self._below = below
        self._layer = layer
        self._columns: dict[int, Typed] = {}
        self._notes: list[Notes] = []

    @property
    def names(self) -> Sequence[str]:
        return tuple(name for name, _ in self._layer.columns)

    def type_of(self, at: int) -> SqlType:
        if at not in self._columns:
            own, tree = _parsed(self._work, f"SELECT {self._layer.columns[at][1]}")
            to = Expressions(own, Scope([self._below]), Queries(own, {}))
            with self._work.attempt() as notes:
                found = to.value(tree.expressions[0])
            self._columns[at] = found
            self._notes.append(notes)
        return self._columns[at].type

    def sql(self) -> str:
        for notes in self._notes:
            self._work.note(notes)
        columns = [f"{self._columns[at].sql} AS c{at}" for at in sorted(self._columns)]
        return f"SELECT {', '.join(['__row', '__odd', *columns])} FROM {self._below.sql()}"


class _KeyRelation:
    """The columns of the keys under one of the aliases that conditions use."""

    def __init__(self, alias: str, columns: Mapping[str, Typed]) -> None:
        self.alias = alias
        self.why: NotUnderstood | None = None
        self._columns = columns

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._columns)

    def column(self, name: str) -> Typed:
        return self._columns[name]

    def sql(self) -> str:
        return _KEYS


def _of_keys(keys: Keys) -> list[Relation]:
    found: dict[str, dict[str, Typed]] = {}
    for at, (column, type_) in enumerate(zip(keys.source.columns, keys.types, strict=True)):
        found.setdefault(column.alias, {})[column.name] = Typed(f"{_KEYS}.c{at}", type_)
    return [_KeyRelation(alias, columns) for alias, columns in found.items()]


def _load_keys(connection: duckdb.DuckDBPyConnection, keys: Keys) -> None:
    import pyarrow as pa

    columns = [[row[at] for row in keys.rows] for at, _ in enumerate(keys.types)]
    arrays = [texts([None if v is None else str(v) for v in values]) for values in columns]
    names = [f"c{at}" for at, _ in enumerate(columns)]
    selected = (
        f"CAST({name} AS {type_.duckdb}) AS {name}"
        for name, type_ in zip(names, keys.types, strict=True)
    )
    load(connection, _KEYS, pa.table(arrays, names=names), ", ".join(selected))
