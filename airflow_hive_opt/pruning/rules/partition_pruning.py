"""Partition pruning by the keys of small tables: HIVE-5119, compile time, steps 4.1 to 4.6.

A scan B may be pruned by the conditions that hold for every row in which it takes part
(:mod:`~airflow_hive_opt.pruning.rules.weakening`) and that read only partition columns of B.
Conditions that also read other relations are evaluated with the keys of small tables
(:mod:`~airflow_hive_opt.pruning.rules.key_sources`), the others with partition names alone. A
partition must fulfil all of them, so the sets of matching partitions are intersected. If the
statement reads a CTE several times, a scan in it reads the union over the readers.

>>> from airflow_hive_opt.pruning.example import decisions
>>> print(decisions('''
...     SELECT amount FROM sales s JOIN days ON s.ds = days.ds AND year = 2000'''))
s: PRUNED, fast by SELECT DISTINCT `days`.`ds` FROM days AS `days` WHERE (`days`.year...
>>> print(decisions('SELECT s.amount FROM sales s LEFT JOIN days d ON s.ds = d.ds'))
s: PRESERVED_SIDE
>>> print(decisions('SELECT s.amount FROM sales s JOIN days d ON substr(s.ds, 1, 4) = d.year'))
s: PRUNED, skeleton by SELECT DISTINCT `d`.`year` FROM days AS `d` WHERE `d`.`year` IS NOT NULL
>>> print(decisions('SELECT s.amount FROM sales s JOIN srcpart p ON s.ds = p.ds AND p.hr = 11'))
s: PRUNED, static by SELECT DISTINCT `p`.`ds` FROM `__partitions_of_p` AS `p` WHERE (p.hr = 11) ...
p: PRUNED, static by SELECT DISTINCT `s`.`ds` FROM `__partitions_of_s` AS `s` WHERE ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from airflow_hive_opt.pruning.decisions import (
    Alternative,
    KeySource,
    PartitionCondition,
    Plan,
    ScanDecision,
)
from airflow_hive_opt.pruning.operators import TableScan
from airflow_hive_opt.pruning.query import Condition
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.rules.key_sources import (
    Small,
    components,
    key_source,
    of_narrowed,
    small_relations,
)
from airflow_hive_opt.pruning.rules.skeletons import VisibleBlock, visible_blocks
from airflow_hive_opt.pruning.rules.weakening import weaken
from airflow_hive_opt.statement.settings import Settings

_STEPS = list(Reason)
# Key queries, and evaluations of conditions, for one scan as one reader reads it. Each is a query
# of Spark's. The first few exclude nearly all partitions that can be excluded.
_MOST_QUESTIONS = 16


@dataclass
class _Findings:
    """The key sources and conditions found so far for one scan, as one reader reads it."""

    scan: TableScan
    furthest: Reason = Reason.NO_CONDITION_ON_PARTITION_COLUMN
    sources: dict[KeySource, None] = field(default_factory=dict)
    conditions: dict[PartitionCondition, None] = field(default_factory=dict)
    columns: set[str] = field(default_factory=set)

    def failed(self, reason: Reason) -> None:
        """Records why a condition does not prune; keeps the reason that is latest in the enum."""
        self.furthest = max(self.furthest, reason, key=_STEPS.index)


def prune_partitions(plan: Plan, settings: Settings) -> Plan:
    """Decides for every scan of a partitioned table, in the order of the trees."""
    found: dict[int, list[ScanDecision]] = {}
    for tree in plan.trees:
        for scan, seen_in in visible_blocks(tree):
            findings = _Findings(scan)
            for place in seen_in:
                _examine(place, findings, settings)
            decided = _decide(findings, settings)
            found.setdefault(scan.relation.reference.start, []).append(decided)
    return replace(plan, decisions=(*map(_for_all_readers, found.values()), *plan.decisions))


def _for_all_readers(decided: Sequence[ScanDecision]) -> ScanDecision:
    """The decision for one scan; ``decided`` are the decisions for its readers."""
    whole = next((decision for decision in decided if not decision.pruned), None)
    if whole is not None:
        return whole
    alternatives = (each for decision in decided for each in decision.alternatives)
    return replace(decided[0], alternatives=tuple(dict.fromkeys(alternatives)))


def _examine(place: VisibleBlock, findings: _Findings, settings: Settings) -> None:
    """Adds the key sources and conditions of one block to the findings for the scan."""
    weakened = weaken(place.tree, place.relation, place.supplied)
    scanned = findings.scan.relation.table.scanned
    links = []
    for condition in weakened.holding:
        reason = _unusable(condition, place)
        if reason is not None:
            findings.failed(reason)
        elif not _mentions(condition, place):
            continue
        elif condition.aliases == {place.alias}:
            findings.conditions[PartitionCondition(condition.sql, place.layers)] = None
            findings.columns |= _restricted(condition, place)
        elif scanned.provider and condition.comparison != "=":  # it gives no list of values
            findings.failed(Reason.KEYS_NOT_COMPARED_AS_COLUMNS)
        else:
            links.append(condition)
    for condition, reason in weakened.dropped:
        if len(condition.aliases) > 1 and _mentions(condition, place):
            findings.failed(_unusable(condition, place) or reason)
    others = weakened.real - {place.alias}
    small, unfit = small_relations(place.tree, others, settings, scanned.total_bytes)
    answered = set()
    groups = components(small, weakened.holding)
    group_of = {alias: group for group, _ in groups for alias in group}
    provided: dict[frozenset[str], list[Condition]] = {}
    for link in links:
        theirs = link.aliases - {place.alias}
        group = group_of.get(min(theirs), frozenset())
        if theirs <= group and all(small[alias].provides(link.columns) for alias in theirs):
            provided.setdefault(group, []).append(link)
    for joined, conditions in groups:
        group, own, mine = joined, conditions, provided.get(joined, [])
        if any(small[alias].narrowed for alias in group):  # its keys are for an index alone
            mine = [link for link in mine if _restricted(link, place) <= {*scanned.indexed}]
            group, own, mine = of_narrowed(joined, conditions, mine, place.alias, small)
        if mine and _can_exclude_partitions(group, own, small, findings.scan):
            source = key_source(place, mine, group, own, small, bool(scanned.provider))
            findings.sources[source] = None
            answered.update(mine)
            for link in mine:
                findings.columns |= _restricted(link, place)
    for link in links:
        if link not in answered:
            why = [unfit[alias] for alias in link.aliases if alias in unfit]
            split = link.aliases - {place.alias} <= small.keys()
            large = Reason.KEYS_NOT_CONNECTED if split and len(link.aliases) > 2 else None
            findings.failed(why[0] if why else large or Reason.KEY_SOURCE_NOT_SMALL)


def _can_exclude_partitions(
    group: frozenset[str], own: Sequence[Condition], small: dict[str, Small], scan: TableScan
) -> bool:
    """Whether the keys can exclude partitions; a table's own partition names alone can't."""
    table = scan.relation.table.scanned
    return bool(own) or any(
        not (small[alias].names and small[alias].table == table) for alias in group
    )


def _mentions(condition: Condition, place: VisibleBlock) -> bool:
    """Whether the condition reads a column that derives from partition columns."""
    mine = {column.name for column in condition.columns if column.alias == place.alias}
    return bool(mine & place.columns.keys())


def _unusable(condition: Condition, place: VisibleBlock) -> Reason | None:
    """Why a condition on partition columns can't be evaluated on partitions alone, or ``None``."""
    if not _mentions(condition, place):
        return None
    mine = [column for column in condition.columns if column.alias == place.alias]
    if any(column.name in place.columns and not place.followed(column) for column in mine):
        return Reason.VALUE_CHANGED
    if any(not place.followed(column) for column in mine):
        return Reason.MIXED_WITH_DATA_COLUMNS
    if not (condition.deterministic and condition.known_functions):
        return Reason.CONDITION_NOT_DETERMINISTIC
    return None if condition.self_contained else Reason.CONDITION_NOT_SELF_CONTAINED


def _restricted(condition: Condition, place: VisibleBlock) -> set[str]:
    """The partition columns that a condition reads."""
    seen = (place.followed(column) for column in condition.columns)
    return {part for found in seen if found is not None for part in found.parts}


def _decide(findings: _Findings, settings: Settings) -> ScanDecision:
    relation = findings.scan.relation
    table = relation.table.scanned
    if not settings.switches.partition_pruning:
        reason = Reason.DISABLED
    elif not table.partitions_in_metastore:
        reason = Reason.PARTITIONS_NOT_IN_METASTORE
    elif table.transactional:
        reason = Reason.TRANSACTIONAL_TABLE
    elif not relation.restrictable:
        reason = Reason.SCAN_NOT_RESTRICTABLE
    elif findings.sources or findings.conditions:
        reason = Reason.PRUNED
    else:
        reason = findings.furthest
    if reason is not Reason.PRUNED:
        return ScanDecision(relation.scan, table, reason, relation)
    if table.provider:
        return _by_values(findings)
    both = _asked(findings.sources), _evaluated(findings.conditions)
    alternative = Alternative(*both, frozenset(findings.columns))
    return ScanDecision(relation.scan, table, reason, relation, (alternative,))


def _asked(sources: Iterable[KeySource]) -> tuple[KeySource, ...]:
    """The sources whose keys are read, in the statement's order.

    Those with conditions of their own come first: all keys of a table rarely exclude a partition.
    """
    best = sorted(sources, key=lambda source: not source.asked)[:_MOST_QUESTIONS]
    chosen = set(map(id, best))
    return tuple(source for source in sources if id(source) in chosen)


def _evaluated(conditions: Iterable[PartitionCondition]) -> tuple[PartitionCondition, ...]:
    """The conditions that Spark evaluates: those of the first layers, one query for each."""
    places = list(dict.fromkeys(condition.layers for condition in conditions))[:_MOST_QUESTIONS]
    return tuple(condition for condition in conditions if condition.layers in places)


def _by_values(findings: _Findings) -> ScanDecision:
    """The decision for a table whose own metadata finds the files of a list of values.

    Only an equality gives such a list. Spark passes the statement's own conditions on.
    """
    relation = findings.scan.relation
    sources = _asked([source for source in findings.sources if source.partition_columns])
    table, columns = relation.table.scanned, frozenset[str]()
    if not sources:
        no_link = findings.furthest is Reason.NO_CONDITION_ON_PARTITION_COLUMN
        alone = findings.conditions and not findings.sources and no_link
        why = Reason.OWN_CONDITION if alone else Reason.KEYS_NOT_COMPARED_AS_COLUMNS
        return ScanDecision(relation.scan, table, why, relation)
    columns = columns.union(*(source.partition_columns for source in sources))
    alternative = Alternative(sources, (), columns)
    return ScanDecision(relation.scan, table, Reason.PRUNED, relation, (alternative,))
