"""Finds the scans that keys in parts of other large tables can restrict.

The local task has found which part of a large table a scan reads. The statement with the scan of
this part alone has the same rows. So the part gives keys to another scan as a small table does, by
the same rules. Its small tables are not read again: their rows may have changed. Its keys are for
key indexes alone: only these tell what many keys leave of a table.

>>> from airflow_hive_opt.pruning.example import followed
>>> sql = '''SELECT s.v FROM lake.s.sales s JOIN lake.s.returns r ON s.ticket = r.ticket
...     JOIN lake.s.days d ON r.day = d.day WHERE d.v = 7'''
>>> print(followed(sql, "r", "`r`.`day` IN (DATE'2026-01-05')"))
s.ticket by SELECT DISTINCT `r`.`ticket` FROM (SELECT * FROM lake.s.returns VERSION AS OF 1 AS `r`
WHERE `r`.`day` IN (DATE'2026-01-05')) AS `r`
WHERE `r`.`ticket` IS NOT NULL
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_hive_opt.pruning.decisions import Alternative, KeySource, Plan, ScanDecision
from airflow_hive_opt.pruning.operators import Operator, TableScan, with_inputs
from airflow_hive_opt.pruning.query import NarrowedTable
from airflow_hive_opt.pruning.rules.partition_pruning import prune_partitions
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.settings import Settings


def hops(
    plan: Plan, narrowed: Sequence[NarrowedTable], settings: Settings
) -> tuple[ScanDecision, ...]:
    """The scans for whose indexes ``narrowed`` tables give keys, with these key sources alone.

    ``plan`` is one to which all rules have been applied. Raises
    :class:`~airflow_hive_opt.statement.budget.OverBudget` inside a budget.
    """
    if plan.row_level is not None or not narrowed:  # its target would need exact keys
        return ()
    by_scan = {each.scan: each for each in narrowed}
    trees = tuple(_with_parts(tree, by_scan) for tree in plan.trees)
    found = prune_partitions(replace(plan, trees=trees, decisions=()), settings).decisions
    return tuple(hop for decision in found if (hop := _by_narrowed(decision)) is not None)


def with_sources(alternative: Alternative, sources: Sequence[KeySource]) -> Alternative:
    """The alternative with some of its key sources."""
    columns = frozenset(name for source in sources for name in source.partition_columns)
    return replace(alternative, sources=tuple(sources), columns=columns)


def _with_parts(operator: Operator, narrowed: Mapping[ScanRef, NarrowedTable]) -> Operator:
    """The tree whose scans know which part of their table they read."""
    if isinstance(operator, TableScan):
        part = narrowed.get(operator.relation.scan)
        return replace(operator, relation=replace(operator.relation, narrowed=part))
    inputs = tuple(_with_parts(each, narrowed) for each in operator.inputs)
    return with_inputs(operator, inputs)


def _by_narrowed(decision: ScanDecision) -> ScanDecision | None:
    """The decision with the sources that read narrowed tables; ``None`` if a reader has none."""
    if not decision.pruned:
        return None
    alternatives = tuple(
        with_sources(each, sources)
        for each in decision.alternatives
        if (sources := [source for source in each.sources if source.narrowed])
    )
    if len(alternatives) < len(decision.alternatives):
        return None
    return replace(decision, alternatives=alternatives)
