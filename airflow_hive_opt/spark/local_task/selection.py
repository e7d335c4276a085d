"""The keys and partitions found for one scan, and the descriptor's entry for it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hive_opt.pruning.decisions import (
    PartitionCondition,
    Path,
    ScanDecision,
)
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.scan_way import FILTER_ON_GLUE
from airflow_hive_opt.runtime.descriptor import (
    SourceKeys,
    Target,
)
from airflow_hive_opt.runtime.partition_filter import VALUES_A_FILTER
from airflow_hive_opt.runtime.partitions import (
    DEFAULT_PARTITION,
    Partition,
    Value,
)
from airflow_hive_opt.spark.keys.key_set import Keys
from airflow_hive_opt.spark.restriction.literals import is_plain, tuples_condition
from airflow_hive_opt.statement.zip_strict import zip_strict

# Characters of one scan's partitions: half of the limit for a descriptor.
_LONGEST_LIST = 32 << 20
_A_PARTITION = 64  # characters in addition to values and location


Tuples = frozenset[tuple[Value, ...]]


class Selection:
    """The keys and partitions found so far for one alternative of a scan's decision."""

    def __init__(self, decision: ScanDecision) -> None:
        self.decision = decision
        columns = decision.table.partition_columns
        self.names = [column.name for column in columns]
        self.types = [column.type for column in columns]
        self.keys: list[Keys] = []
        self.tuples: list[tuple[Keys, Tuples]] = []
        self.compared: list[Keys] = []
        self.used: list[Keys] = []
        self.partitions: list[Partition] = []
        self.filter: str | None = None
        self.failure: Reason | None = None
        self.answered = False

    def add(self, keys: Keys) -> None:
        """Adds keys, as tuples for the metastore if they can be compared without a cast."""
        types = dict(zip_strict(self.names, self.types))
        tuples = keys.tuples([types[name] for name in keys.source.partition_columns])
        self.keys.append(keys)
        if tuples is None:
            self.compared.append(keys)
        else:
            self.tuples.append((keys, tuples))

    def wanted(self) -> list[tuple[list[int], Tuples]]:
        """The tuples with the positions of their partition columns."""
        return [
            ([self.names.index(name) for name in keys.source.partition_columns], tuples)
            for keys, tuples in self.tuples
        ]

    @property
    def values(self) -> list[Value]:
        """All values of the tuples."""
        return [value for _, tuples in self.tuples for row in tuples for value in row]

    def asked(self, partitions: list[Partition], keys: Sequence[Keys]) -> None:
        """Stores the partitions found so far and adds the keys that found them."""
        self.partitions = partitions
        self.used.extend(keys)
        self.answered = True


def union_of(selections: Sequence[Selection]) -> tuple[Partition, ...]:
    """The partitions of all selections, each once, with its location if one of them has it."""
    found: dict[tuple[str | None, ...], Partition] = {}
    for selection in selections:
        for partition in selection.partitions:
            known = found.get(partition.values)
            if known is None or known.location is None:
                found[partition.values] = partition
    return tuple(found.values())


def target_of(
    decision: ScanDecision, relation: TableRelation, selections: Sequence[Selection], total: int
) -> Target:
    """The descriptor's entry for a scan, with one selection for each alternative."""
    columns = relation.table.scanned.partition_columns
    filters = [selection.filter for selection in selections]
    sources = [
        SourceKeys(keys.source.aliases, keys.source.name, keys.source.sql, keys.count)
        for selection in selections
        for keys in selection.used
    ]
    names = {column.name: name for name, column in relation.table.visible_pruning_columns}
    return Target(
        alias=decision.alias,
        table=decision.table.name,
        text=relation.text,
        aliased=relation.aliased,
        reference=(relation.reference.start, relation.reference.stop),
        columns=tuple(column.name for column in columns),
        types=tuple(column.type for column in columns),
        pruned_columns=decision.columns,
        visible_columns=tuple(names[column] for column in decision.columns),
        location=decision.table.location,
        partitions=union_of(selections),
        total=total,
        path=_path(selections).value,
        filter=_any_of(filters),
        sources=tuple(dict.fromkeys(sources)),
    )


def _any_of(filters: Sequence[str | None]) -> str | None:
    """A condition that is true if one of the filters is; ``None`` if one of them is missing."""
    given = [found for found in filters if found is not None]
    if len(given) < len(filters):
        return None
    return given[0] if len(given) == 1 else " OR ".join(f"({found})" for found in given)


def _path(selections: Sequence[Selection]) -> Path:
    """How the partitions were found."""
    used = [(keys, selection) for selection in selections for keys in selection.used]
    if all(keys.source.from_names for keys, _ in used):
        return Path.STATIC
    compared = any(keys in selection.compared for keys, selection in used)
    return Path.SKELETON if compared else Path.FAST


def is_long_on_glue(selection: Selection) -> bool:
    """Whether AWS Glue would refuse the keys as one filter, because it is too long.

    Then new partitions of the keys are not found when the filter is sent again.
    """
    a_value = max(map(len, selection.names)) + len(' = "" or ')
    texts = sum(len(str(value).encode()) + a_value for value in selection.values)
    return texts > FILTER_ON_GLUE


def filter_of(selection: Selection, conditions: Sequence[PartitionCondition]) -> str | None:
    """All keys and conditions as one SQL condition, which the map join stage can evaluate again.

    ``None`` if they can't be written as one condition on the scan's partition columns.
    """
    values, alias = selection.values, selection.decision.alias
    plain = len(values) <= VALUES_A_FILTER and all(map(is_plain, values))
    names_the_null = selection.decision.table.by_serde and DEFAULT_PARTITION in values
    at_the_scan = all(len(condition.layers) == 1 for condition in conditions)
    if selection.compared or not plain or names_the_null or not at_the_scan:
        return None
    parts = [
        f"({tuples_condition(alias, keys.source.partition_columns, tuples)})"
        for keys, tuples in selection.tuples
    ]
    return " AND ".join([*parts, *(f"({condition.sql})" for condition in conditions)])


def is_too_long(partitions: Sequence[Partition]) -> bool:
    """Whether one scan's partitions have too many characters for a descriptor."""
    texts = (text for part in partitions for text in (*part.values, part.location) if text)
    return _A_PARTITION * len(partitions) + sum(map(len, texts)) > _LONGEST_LIST
