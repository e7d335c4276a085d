"""The operator tree of a query, from its scans up to its sink, as in Hive.

Every operator is frozen and refers to its inputs. A rule returns a new tree.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from airflow_hive_opt.pruning.query import (
    ColumnRef,
    Condition,
    JoinKind,
    OpaqueRelation,
    Projection,
    QueryBlock,
    Relation,
    Statement,
    SubqueryRelation,
    TableRelation,
)


@dataclass(frozen=True)
class _Unary:
    """An operator with one input."""

    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The input alone."""
        return (self.input,)


@dataclass(frozen=True)
class TableScan:
    """Reads a table (Hive's TS)."""

    relation: TableRelation
    inputs = ()


@dataclass(frozen=True)
class PassedThrough:
    """A relation that the planner can't analyze; it passes through to Spark."""

    relation: OpaqueRelation
    inputs = ()


@dataclass(frozen=True)
class Filter(_Unary):
    """Keeps the rows that fulfil every condition (Hive's FIL)."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Join:
    """Joins two inputs (Hive's JOIN)."""

    left: Operator
    right: Operator
    kind: JoinKind
    conditions: tuple[Condition, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The left input, then the right one."""
        return (self.left, self.right)

    @cached_property
    def leaves(self) -> Mapping[str, Operator]:
        """See :func:`relations`; cached, because a chain of joins needs them again and again."""
        return {**relations(self.left), **relations(self.right)}

    @cached_property
    def subqueries(self) -> frozenset[str]:
        """The aliases of the relations that are subqueries."""
        return subqueries(self.left) | subqueries(self.right)


@dataclass(frozen=True)
class LateralView(_Unary):
    """Adds rows and columns of a table function to each row (Hive's LVJ)."""

    relation: OpaqueRelation


@dataclass(frozen=True)
class GroupBy(_Unary):
    """Groups by ``keys``, or all rows into one group if there are none (Hive's GBY)."""

    keys: tuple[Projection, ...]


@dataclass(frozen=True)
class Select(_Unary):
    """Computes a block's output columns (Hive's SEL).

    ``subquery`` is set for a subquery in FROM. ``windows`` are the columns by which every window
    function partitions, and ``None`` without window functions.
    """

    projections: tuple[Projection, ...]
    windows: frozenset[ColumnRef] | None
    distinct: bool
    subquery: SubqueryRelation | None


@dataclass(frozen=True)
class Limit(_Unary):
    """Keeps a number of rows, those that come first (Hive's LIM)."""


@dataclass(frozen=True)
class Union:
    """Combines the rows of several blocks, distinct or not (Hive's UNION)."""

    inputs: tuple[Operator, ...]
    subquery: SubqueryRelation


@dataclass(frozen=True)
class FileSink(_Unary):
    """Writes the result to ``target``, or returns it if that is ``None`` (Hive's FS)."""

    target: str | None


Operator = typing.Union[
    TableScan, PassedThrough, Filter, Join, LateralView, GroupBy, Select, Limit, Union, FileSink
]


def walk(operator: Operator) -> Iterator[Operator]:
    """The operator and all operators below it, top down, left before right."""
    yield operator
    for input_ in operator.inputs:
        yield from walk(input_)


def with_inputs(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
    """The operator with other inputs, of the same number."""
    if isinstance(operator, (TableScan, PassedThrough)):
        return operator
    if isinstance(operator, Join):
        return replace(operator, left=inputs[0], right=inputs[1])
    if isinstance(operator, Union):
        return replace(operator, inputs=inputs)
    return replace(operator, input=inputs[0])


def relations(operator: Operator) -> Mapping[str, Operator]:
    """The relations of a block by alias: the operators directly below its joins and filters.

    A subquery is one relation, whatever it contains.
    """
    if isinstance(operator, (TableScan, PassedThrough)):
        return {operator.relation.alias: operator}
    subquery = subquery_of(operator)
    if subquery is not None:
        return {subquery.alias: operator}
    if isinstance(operator, Join):
        return operator.leaves
    found: dict[str, Operator] = {}
    for input_ in operator.inputs:
        found.update(relations(input_))
    if isinstance(operator, LateralView):
        found[operator.relation.alias] = PassedThrough(operator.relation)
    return found


def subqueries(operator: Operator) -> frozenset[str]:
    """The aliases of the relations of a block that are subqueries."""
    if isinstance(operator, Join):
        return operator.subqueries
    if isinstance(operator, Filter):
        return subqueries(operator.input)
    return frozenset(a for a, leaf in relations(operator).items() if subquery_of(leaf) is not None)


def subquery_of(operator: Operator) -> SubqueryRelation | None:
    """The subquery in FROM whose top operator this is, or ``None``."""
    below = operator.input if isinstance(operator, Limit) else operator
    return below.subquery if isinstance(below, (Select, Union)) else None


def build(statement: Statement) -> tuple[FileSink, ...]:
    """Builds one tree for each outermost block, before any rule, as Hive's plan generation does.

    Only the first can write to the target.
    """
    return tuple(
        FileSink(_block(block, None), statement.target if index == 0 else None)
        for index, block in enumerate(statement.blocks)
    )


def _block(block: QueryBlock, subquery: SubqueryRelation | None) -> Operator:
    tree = _relation(block.first)
    for step in block.joins:
        tree = Join(tree, _relation(step.right), step.kind, step.on)
    for lateral in block.lateral:
        tree = LateralView(tree, lateral)
    if block.where:
        tree = Filter(tree, block.where)
    if block.group_by is not None:
        tree = GroupBy(tree, block.group_by)
    tree = Select(tree, block.projections, block.windows, block.distinct, subquery)
    return Limit(tree) if block.limited else tree


def _relation(relation: Relation) -> Operator:
    if isinstance(relation, TableRelation):
        return TableScan(relation)
    if isinstance(relation, SubqueryRelation):
        if len(relation.branches) == 1:
            return _block(relation.branches[0], relation)
        return Union(tuple(_block(branch, None) for branch in relation.branches), relation)
    return PassedThrough(relation)


def draw(operator: Operator, depth: int = 0) -> str:
    """The tree with one operator on each line; inputs follow, indented by two more spaces."""
    lines = ["  " * depth + _label(operator)]
    lines.extend(draw(input_, depth + 1) for input_ in operator.inputs)
    return "\n".join(lines)


def _label(operator: Operator) -> str:
    if isinstance(operator, TableScan):
        alias = f" {operator.relation.alias}" if operator.relation.aliased else ""
        return f"TS {operator.relation.table.short_name}{alias}"
    if isinstance(operator, PassedThrough):
        return f"(passed through) {operator.relation.alias}".rstrip()
    if isinstance(operator, Filter):
        return f"FIL {_conditions(operator.conditions)}"
    if isinstance(operator, Join):
        on = f" ON {_conditions(operator.conditions)}" if operator.conditions else ""
        return f"JOIN {operator.kind}{on}"
    if isinstance(operator, LateralView):
        return f"LVJ {operator.relation.alias}"
    if isinstance(operator, GroupBy):
        keys = ", ".join(key.name or "?" for key in operator.keys)
        return f"GBY {keys}".rstrip()
    if isinstance(operator, Select):
        name = f" as {operator.subquery.alias}" if operator.subquery else ""
        return f"SEL{name}" + (" with window functions" if operator.windows is not None else "")
    if isinstance(operator, Union):
        return f"UNION as {operator.subquery.alias}"
    if isinstance(operator, FileSink):
        return f"FS {operator.target or ''}".rstrip()
    return "LIM"


def _conditions(conditions: tuple[Condition, ...]) -> str:
    return " AND ".join(
        " ".join(condition.text.split()) or " = ".join(sorted(map(str, condition.columns)))
        for condition in conditions
    )
