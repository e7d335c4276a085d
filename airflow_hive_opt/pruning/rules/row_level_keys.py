"""Drops the keys that a statement which changes rows can't use: MERGE, UPDATE, DELETE.

If all rows of the target are read, keys save nothing there. The target's own keys must not restrict
another scan: a row that another run adds to the target would find no match there.

>>> from airflow_hive_opt.pruning.example import LAKE, decisions
>>> merge = "MERGE INTO lake.s.orders o USING lake.s.days d ON o.day = d.day"
>>> print(decisions(f"{merge} WHEN MATCHED THEN DELETE", LAKE))
o: PRUNED, predicate by SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE ...
d: PRESERVED_SIDE
>>> print(decisions(f"{merge} WHEN NOT MATCHED BY SOURCE THEN DELETE", LAKE))
o: NOT_MATCHED_BY_SOURCE
d: PRESERVED_SIDE
>>> print(decisions('''DELETE FROM lake.s.days d
...     WHERE d.day IN (SELECT o.day FROM lake.s.orders o)''', LAKE))
d: KEY_SOURCE_NOT_SMALL
o: KEYS_OF_THE_TARGET
"""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.pruning.decisions import Plan, ScanDecision
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.row_level import RowLevel
from airflow_hive_opt.statement.settings import Settings


def drop_unusable_keys(plan: Plan, _: Settings) -> Plan:
    """Drops keys of the target, and those for a target of which all rows are read."""
    row_level = plan.row_level
    if row_level is None:
        return plan
    return replace(plan, decisions=tuple(_possible(found, row_level) for found in plan.decisions))


def _possible(decision: ScanDecision, row_level: RowLevel) -> ScanDecision:
    """The decision for a scan, without keys that can't be used."""
    if not decision.pruned or decision.relation is None:
        return decision
    if decision.relation.reference == row_level.target:
        if not row_level.reads_whole_target:
            return decision
        return replace(decision, reason=Reason.NOT_MATCHED_BY_SOURCE, alternatives=())
    if not any(row_level.target_alias in source.aliases for source in decision.sources):
        return decision
    return replace(decision, reason=Reason.KEYS_OF_THE_TARGET, alternatives=())
