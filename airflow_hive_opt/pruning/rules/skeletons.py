"""Finds the blocks in which a scan's partition columns are visible: its own and enclosing ones.

A subquery, each reader of a CTE and UNION pass partition columns on, possibly renamed or as
arguments of deterministic expressions (HIVE-5119, step 4.5: otherwise the value does not reach the
join). LIMIT, aggregates and window functions pass no partition column on, except group keys and the
columns by which all window functions partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.pruning.operators import (
    FileSink,
    GroupBy,
    Limit,
    Operator,
    Select,
    TableScan,
    Union,
    relations,
    subquery_of,
)
from airflow_hive_opt.pruning.output_columns import GENERATED
from airflow_hive_opt.pruning.query import ColumnRef, Projection
from airflow_hive_opt.pruning.rules.weakening import null_supplied
from airflow_hive_opt.statement.catalog import Column
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.types import is_exact


@dataclass(frozen=True)
class VisibleColumn:
    """A column that derives from partition columns.

    ``sql`` is its expression over the layer below; it is empty if the value can't be followed.
    ``column`` and ``type`` are the name and the Hive type of the partition column that it equals;
    both are empty if it is not an unchanged partition column. ``parts`` are all partition columns
    from which it derives.
    """

    sql: str
    column: str = ""
    type: str = ""
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class VisibleBlock:
    """A block in which the scan's partition columns are visible as columns of one relation.

    ``tree`` is the operator below the block's SELECT, ``relation`` one of its leaves. ``supplied``
    says that outer joins inside the relation may have put NULLs in place of the scan's rows.
    """

    tree: Operator
    relation: Operator
    alias: str
    layers: tuple[Layer, ...]
    columns: Mapping[str, VisibleColumn]
    supplied: bool = False

    @property
    def supplied_outside(self) -> bool:
        """Whether the block's output may have NULLs in place of the scan's rows."""
        return self.supplied or null_supplied(self.tree, self.relation)

    def followed(self, column: ColumnRef) -> VisibleColumn | None:
        """The column if it derives from partition columns only; otherwise ``None``."""
        seen = self.columns.get(column.name) if column.alias == self.alias else None
        return seen if seen is not None and seen.sql else None


def visible_blocks(root: Operator) -> Iterator[tuple[TableScan, tuple[VisibleBlock, ...]]]:
    """Every scan of a partitioned table, with the blocks that see its columns, innermost first."""
    for scan, found, _ in _visible_blocks(root):
        yield scan, found


def outputs(root: Operator) -> Iterator[tuple[TableScan, Mapping[str, VisibleColumn]]]:
    """Scans of partitioned tables below a query, with the output columns that derive from each.

    Only scans from which every value of the column comes. A scan is left out if an outer join may
    replace its rows by NULLs, or if a UNION adds rows of other branches.
    """
    for scan, found, columns in _visible_blocks(root):
        mixed = any(isinstance(place.relation, Union) for place in found)
        if not mixed and not found[-1].supplied_outside:
            yield scan, columns


def column_type(operator: Operator, name: str) -> str:
    """The Hive type of a relation's column; empty if it is not known."""
    if isinstance(operator, TableScan):
        types = {column.name: column.type for column in operator.relation.table.all_columns}
        return types.get(name, "")
    subquery = subquery_of(operator)
    if subquery is None or name not in subquery.columns or "*" in subquery.columns:
        return ""
    if isinstance(operator, Union) and not _aligned(operator):
        return ""
    at = subquery.columns.index(name)
    types_ = {_output_type(branch, at) for branch in _branches(operator)}
    return types_.pop() if len(types_) == 1 else ""


_Found = tuple[TableScan, tuple[VisibleBlock, ...], dict[str, VisibleColumn]]


def _visible_blocks(operator: Operator) -> Iterator[_Found]:
    """Scans below a query, the blocks that see them, and the query's columns from each."""
    if isinstance(operator, FileSink):
        yield from _visible_blocks(operator.input)
    elif isinstance(operator, Union):
        yield from _through_union(operator)
    elif isinstance(operator, Limit):
        for scan, found, outputs in _visible_blocks(operator.input):
            yield scan, found, dict.fromkeys(outputs, VisibleColumn(""))
    elif isinstance(operator, Select):
        below = operator.input
        tree = below.input if isinstance(below, GroupBy) else below
        for leaf in relations(tree).values():
            for scan, found in _in_block(tree, leaf):
                yield scan, found, _outputs(operator, found[-1])


def _in_block(
    tree: Operator, leaf: Operator
) -> Iterator[tuple[TableScan, tuple[VisibleBlock, ...]]]:
    if isinstance(leaf, TableScan):
        table, alias = leaf.relation.table, leaf.relation.alias
        columns = {
            name: itself(alias, name, column) for name, column in table.visible_pruning_columns
        }
        layers: tuple[Layer, ...] = (Layer(alias),)
        if table.underlying is not None:
            named = table.underlying.columns
            handed = tuple((name, f"{quote(alias)}.{quote(column)}") for name, column in named)
            layers += (Layer(alias, handed),)
        if columns:
            yield leaf, (VisibleBlock(tree, leaf, alias, layers, columns),)
        return
    subquery = subquery_of(leaf)
    if subquery is None:
        return
    for scan, found, outputs in _visible_blocks(leaf):
        known = tuple((name, seen.sql) for name, seen in outputs.items() if seen.sql)
        layers = (*found[-1].layers, Layer(subquery.alias, known))
        inside = found[-1].supplied_outside
        yield scan, (*found, VisibleBlock(tree, leaf, subquery.alias, layers, outputs, inside))


def _outputs(select: Select, place: VisibleBlock) -> dict[str, VisibleColumn]:
    """The SELECT's columns that derive from the place's columns, by output name."""
    own_names = tuple(projection.name for projection in select.projections)
    names = (select.subquery.names if select.subquery else ()) or own_names
    found = ((name, _output(select, at, place)) for at, name in enumerate(names))
    return {name: seen for name, seen in found if seen is not None and name != GENERATED}


def _output(select: Select, at: int, place: VisibleBlock) -> VisibleColumn | None:
    """The SELECT's column at position ``at``; ``None`` if it reads no column of the place."""
    projection = select.projections[at]
    mine = {column.name for column in projection.columns if column.alias == place.alias}
    if not mine & place.columns.keys():
        return None
    followed = [place.followed(column) for column in projection.columns]
    if None in followed or not same_for_group(select, projection):
        return VisibleColumn("")
    bare = place.followed(projection.column) if projection.column else None
    if bare:
        return replace(bare, sql=projection.sql)
    if place.supplied_outside:  # the expression may turn the NULLs into a value
        return VisibleColumn("")
    parts = (seen.parts for seen in followed if seen is not None)
    return VisibleColumn(projection.sql, parts=frozenset().union(*parts))


def itself(alias: str, name: str, column: Column) -> VisibleColumn:
    """A scan's own column, under the name that the scan's relation gives it."""
    sql = f"{quote(alias)}.{quote(name)}"
    return VisibleColumn(sql, column.name, column.type, frozenset({column.name}))


def same_for_group(select: Select, projection: Projection) -> bool:
    """Whether the column is the same for all rows that GROUP BY, windows or DISTINCT put together.

    Rows of one group are equal, but not always identical: 0.0 equals -0.0, and a collation may
    ignore case.
    """
    grouped = isinstance(select.input, GroupBy)
    if not grouped and select.windows is None and not select.distinct:
        return True
    if isinstance(select.input, GroupBy):
        keys = {key.column for key in select.input.keys if key.column is not None}
        if not projection.columns or not projection.columns <= keys:
            return False
    if select.windows is not None and not projection.columns <= select.windows:
        return False
    leaves = relations(select.input.input if isinstance(select.input, GroupBy) else select.input)
    types = (column_type(leaves[c.alias], c.name) for c in projection.columns if c.alias in leaves)
    return all(map(is_exact, types))


def _through_union(union: Union) -> Iterator[_Found]:
    """Matches the branches' columns by position.

    A column passes if every branch has a bare column of the same type there.
    """
    aligned = _aligned(union)
    for branch in union.inputs:
        for scan, found, _ in _visible_blocks(branch):
            outputs: dict[str, VisibleColumn] = {}
            for at, name in enumerate(union.subquery.columns if aligned else ()):
                select = branch.input if isinstance(branch, Limit) else branch
                seen = _output(select, at, found[-1]) if isinstance(select, Select) else None
                if seen is not None and name != GENERATED:
                    alike = select is branch and column_type(union, name)
                    outputs[name] = seen if alike else VisibleColumn("")
            yield scan, found, outputs


def _aligned(union: Union) -> bool:
    """Whether all columns of all branches are known and equal in number."""
    lengths = {len(branch.projections) for branch in union.subquery.branches}
    names = (found.name for branch in union.subquery.branches for found in branch.projections)
    return len(lengths) == 1 and "*" not in names


def _branches(operator: Operator) -> tuple[Operator, ...]:
    return operator.inputs if isinstance(operator, Union) else (operator,)


def _output_type(query: Operator, at: int) -> str:
    """The type of a query's column; empty unless it is a bare column of known type."""
    select = query.input if isinstance(query, Limit) else query
    if not isinstance(select, Select) or at >= len(select.projections):
        return ""
    column = select.projections[at].column
    below = select.input.input if isinstance(select.input, GroupBy) else select.input
    source = relations(below).get(column.alias) if column is not None else None
    return column_type(source, column.name) if source is not None and column is not None else ""
