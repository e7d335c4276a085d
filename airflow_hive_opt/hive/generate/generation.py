"""The state of a statement while its graph is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from airflow_hive_opt.hive.generate.names import Scope
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.settings import Settings

_VIRTUAL = (("block__offset__inside__file", "bigint"), ("input__file__name", "string"))


@dataclass
class Generation:
    """The state that all modules of the generation share.

    ``scans`` are the graph's roots, ``sinks`` its leaves. ``subquery`` makes the graph of a
    subquery in a condition, given its path of aliases. It is a callback, because a subquery is
    itself a query.
    """

    sql: str
    catalog: Catalog
    settings: Settings
    subquery: Callable[[syntax.Query, str], ops.Operator]
    scans: list[ops.TableScan] = field(default_factory=list)
    sinks: list[ops.FileSink] = field(default_factory=list)


@dataclass(frozen=True)
class BlockContext:
    """What the clauses of a block need: its inputs by alias, and its path of aliases.

    ``sink`` is true if its bodies write files, ``nested`` if it is a subquery in a condition.
    """

    generation: Generation
    sources: dict[str, ops.Operator]
    path: str
    sink: bool
    nested: bool


def reduce_sink(
    below: ops.Operator,
    keys: Sequence[syntax.Expression],
    distinct: Sequence[syntax.Expression] = (),
) -> ops.ReduceSink:
    """Makes a ReduceSink by the keys. Without keys there is one reducer."""
    found = ops.ReduceSink(
        list(below.columns),
        keys=(*keys, *distinct),
        partition_keys=tuple(keys),
        order="+" * (len(keys) + len(distinct)),
        reducers=-1 if keys else 1,
        distinct=len(distinct),
    )
    return ops.attach(found, below)


def filtered(
    sql: str, operator: ops.Operator, condition: syntax.Expression, scope: Scope | None = None
) -> ops.Operator:
    """Makes a Filter over ``operator``."""
    scope = scope or Scope(sql, operator.columns)
    # Resolving turns NOT (a OR b) into an AND, so the result is split again.
    predicate = tuple(
        each
        for part in syntax.conjuncts(condition)
        for each in syntax.conjuncts(scope.resolve(part))
    )
    return ops.attach(ops.Filter(list(operator.columns), predicate=predicate), operator)


def factors(source: syntax.Source | None) -> list[syntax.TableSource | syntax.SubquerySource]:
    """Returns the tables and subqueries of a FROM clause, from left to right."""
    if source is None:
        return []
    if isinstance(source, syntax.JoinSource):
        return factors(source.left) + factors(source.right)
    if isinstance(source, syntax.LateralView):
        return factors(source.source)
    return [source]


def table_columns(table: Table, alias: str) -> list[ops.ColumnInfo]:
    """Returns the columns of a table's scan. The virtual ones are last and hidden."""
    columns = [(each.name, each.type, False, False) for each in table.columns]
    columns += [(each.name, each.type, True, False) for each in table.partition_columns]
    columns += [(name, kind, True, True) for name, kind in _VIRTUAL]
    return [
        ops.ColumnInfo(name, alias, name, kind, partition, hidden)
        for name, kind, partition, hidden in columns
    ]
