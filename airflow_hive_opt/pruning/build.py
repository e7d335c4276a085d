"""Builds operator trees from query blocks, before any rule, as Hive's plan generation does."""

from __future__ import annotations

from airflow_hive_opt.pruning.operators import (
    FileSink,
    Filter,
    GroupBy,
    Join,
    LateralView,
    Limit,
    Operator,
    PassedThrough,
    Select,
    TableScan,
    Union,
)
from airflow_hive_opt.pruning.query import (
    QueryBlock,
    Relation,
    Statement,
    SubqueryRelation,
    TableRelation,
)


def build(statement: Statement) -> tuple[FileSink, ...]:
    """Builds one tree for each outermost block; only the first can write to the target."""
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
