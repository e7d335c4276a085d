"""Collects the keys of a statement's scans, so that a sensor can wait for partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.documents.required_keys import FoundKeys, ScanKeys
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.key_sets import KeySets
from airflow_hive_opt.metastores.partitions import Value
from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.lake_formats import LAKE_FORMATS


class _NotCollected(Exception):
    """The local task has not read all keys of a source, or may have read too many."""


def collected_keys(plan: Plan, key_sets: KeySets) -> FoundKeys | None:
    """The keys of all scans if the local task has read them all, else ``None``; reads nothing."""

    def collected(source: KeySource) -> Keys:
        keys = key_sets.known(source)
        if keys is None or not keys.exact:
            raise _NotCollected
        return keys

    try:
        return required_keys(plan, collected)
    except _NotCollected:
        return None


def required_keys(
    plan: Plan, keys_of: Callable[[KeySource], Keys | Reason], only: Collection[str] = ()
) -> FoundKeys:
    """The keys of every scan that keys prune, with one entry for each of its alternatives.

    Only keys are used that a plain equality compares with a partition column. ``only`` names
    partition columns; keys of other columns are left out. A scan that :func:`not_waited_for`
    excludes has no entry.
    """
    scans: list[ScanKeys] = []
    notes: dict[str, None] = {}
    for decision in plan.decisions:
        if why := not_waited_for(decision, plan):
            notes[f"{decision.scan.name} is not waited for: {why}"] = None
            continue
        if not decision.pruned:
            notes[f"{decision.scan.name} requires no partitions: {decision.reason.sentence}"] = None
        for one in decision.separate():
            scans += _scan_keys(one, keys_of, only, notes.setdefault)
    return FoundKeys(tuple(scans), tuple(notes))


def not_waited_for(decision: ScanDecision, plan: Plan) -> str | None:
    """Why a sensor never waits for partitions of the scan; ``None`` if it may.

    The target of MERGE, UPDATE and DELETE is one reason: the statement may itself add what is
    missing there.
    """
    provider = decision.table.provider
    if provider and not LAKE_FORMATS[provider].has_client:
        return f"a sensor can't look up partitions of {provider} tables"
    if plan.row_level is None or decision.relation is None:
        return None
    is_target = decision.relation.reference == plan.row_level.target
    return "the statement changes its rows" if is_target else None


def types_of(decision: ScanDecision) -> dict[str, str]:
    """The types of the columns from whose values the table makes its partitions."""
    table = decision.table
    if not table.provider:
        return {column.name: column.type for column in table.partition_columns}
    columns = {column.name: column.type for column in table.columns}
    return {name: columns[name] for name in table.partitioned_by}


def _scan_keys(
    decision: ScanDecision,
    keys_of: Callable[[KeySource], Keys | Reason],
    only: Collection[str],
    note: Callable[[str], object],
) -> Sequence[ScanKeys]:
    types = types_of(decision)
    usable: list[KeyTuples] = []
    queries: list[str] = []
    for source in decision.sources:
        names = source.partition_columns
        if not names or source.skeletons:  # its keys alone do not determine the partitions
            note(
                f"the keys of {source.name} are not waited for: no condition is an equality of a "
                "key with a bare partition column"
            )
            continue
        if only and set(only).isdisjoint(names):
            continue
        if sorted_by := [name for name in names if name not in types]:
            what = f"{decision.scan.name} is sorted by the column, but has no partitions by it"
            note(f"{', '.join(sorted_by)} is not waited for: {what}")
        if len(sorted_by) == len(names):
            continue
        tuples = _tuples(keys_of(source), source, decision, types)
        if isinstance(tuples, Reason):
            note(f"the keys of {source.name} are not waited for: {tuples.sentence}")
        else:
            usable.append(KeyTuples.of((name for name in names if name in types), tuples))
            queries.append("" if sorted_by else source.sql)
    if not usable:
        return ()
    table = decision.table
    location = (table.location or "") if table.provider else ""
    columns, every = tuple(types), tuple(types.values())
    keys = tuple(usable), location, tuple(queries)
    return [ScanKeys(table.name, columns, every, table.provider, *keys)]


def _tuples(
    keys: Keys | Reason, source: KeySource, decision: ScanDecision, types: Mapping[str, str]
) -> frozenset[tuple[Value, ...]] | Reason:
    """The keys of the columns in ``types``, or why they can't be used."""
    if isinstance(keys, Reason):
        return keys
    names = source.partition_columns
    if decision.table.provider:
        found = keys.tuples_of({at: types[name] for at, name in enumerate(names) if name in types})
    else:
        found = keys.tuples([types[name] for name in names])
    return Reason.TYPE_NOT_COMPARABLE if found is None else found
