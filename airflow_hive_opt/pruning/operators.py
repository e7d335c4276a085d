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
    SubqueryRelation,
    TableRelation,
)


@dataclass(frozen=True)
class TableScan:
    """Reads a table (Hive's TS)."""

    relation: TableRelation

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Empty: a scan is a leaf."""
        return ()


@dataclass(frozen=True)
class PassedThrough:
    """A relation that the planner can't analyze; it passes through to Spark."""

    relation: OpaqueRelation

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Empty: the planner does not know its inputs."""
        return ()


@dataclass(frozen=True)
class Filter:
    """Keeps the rows that fulfil every condition (Hive's FIL)."""

    input: Operator
    conditions: tuple[Condition, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The filtered operator."""
        return (self.input,)


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
        """See :func:`relations`; a chain of joins would ask for them again and again."""
        return {**relations(self.left), **relations(self.right)}

    @cached_property
    def subqueries(self) -> frozenset[str]:
        """The aliases of the relations that are subqueries."""
        return subqueries(self.left) | subqueries(self.right)


@dataclass(frozen=True)
class LateralView:
    """Adds rows and columns of a table function to each row (Hive's LVJ)."""

    input: Operator
    relation: OpaqueRelation

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operator whose rows are exploded."""
        return (self.input,)


@dataclass(frozen=True)
class GroupBy:
    """Groups by ``keys``, or all rows into one group if there are none (Hive's GBY)."""

    input: Operator
    keys: tuple[Projection, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The grouped operator."""
        return (self.input,)


@dataclass(frozen=True)
class Select:
    """Computes a block's output columns (Hive's SEL).

    ``subquery`` is set for a subquery in FROM. ``windows`` are the columns by which every window
    function partitions, and ``None`` without window functions.
    """

    input: Operator
    projections: tuple[Projection, ...]
    windows: frozenset[ColumnRef] | None
    distinct: bool
    subquery: SubqueryRelation | None

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operator below."""
        return (self.input,)


@dataclass(frozen=True)
class Limit:
    """Keeps a number of rows, those that come first (Hive's LIM)."""

    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operator below."""
        return (self.input,)


@dataclass(frozen=True)
class Union:
    """Combines the rows of several blocks, distinct or not (Hive's UNION)."""

    inputs: tuple[Operator, ...]
    subquery: SubqueryRelation


@dataclass(frozen=True)
class FileSink:
    """Writes the result to ``target``, or returns it if that is ``None`` (Hive's FS)."""

    input: Operator
    target: str | None

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operator below."""
        return (self.input,)


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
