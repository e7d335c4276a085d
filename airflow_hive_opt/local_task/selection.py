"""The keys and partitions found for one scan, and the descriptor's entry for it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hive_opt.documents.descriptor import (
    NewPartitions,
    SourceKeys,
    Target,
)
from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.metastores.partitions import (
    DEFAULT_PARTITION,
    Partition,
    Value,
)
from airflow_hive_opt.metastores.thrift.partition_filter import VALUES_A_FILTER
from airflow_hive_opt.pruning.decisions import (
    PartitionCondition,
    Path,
    ScanDecision,
)
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.scan_way import FILTER_ON_GLUE
from airflow_hive_opt.restriction.literals import is_plain, tuples_condition
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.zip_strict import zip_strict

# Characters of one scan's partitions: half of the limit for a descriptor.
_LONGEST_LIST = 32 << 20
_A_PARTITION = 64  # characters in addition to values and location


Tuples = frozenset[tuple[Value, ...]]


class Selection:
    """The keys and partitions found so far for one alternative of a scan's decision.

    With ``hand_over``, another application will read the list, and tables may have got other
    partitions by then. Keys that come from partition names are then ``growing``.
    """

    def __init__(self, decision: ScanDecision, hand_over: bool) -> None:
        self.decision = decision
        self._hand_over = hand_over
        columns = decision.table.partition_columns
        self.columns = [column.name for column in columns]
        self.types = [column.type for column in columns]
        self.keys: list[Keys] = []
        self.tuples: list[tuple[Keys, Tuples]] = []
        self.growing: list[tuple[Keys, Tuples]] = []
        self.compared: list[Keys] = []
        self.used: list[Keys] = []
        self.candidates: list[Partition] | None = None  # those that match the tuples
        self.names: dict[str, str] = {}  # of the tables of growing keys, the partitions' digest
        self._left_out_by_names: list[Partition] = []
        self.partitions: list[Partition] = []
        self.filter: str | None = None
        self.failure: Reason | None = None
        self.answered = False

    def add(self, keys: Keys) -> None:
        """Adds keys, as tuples for the metastore if they can be compared without a cast."""
        types = dict(zip_strict(self.columns, self.types))
        tuples = keys.tuples([types[name] for name in keys.source.partition_columns])
        self.keys.append(keys)
        if tuples is None:
            self.compared.append(keys)
        else:
            (self.growing if self.may_grow(keys) else self.tuples).append((keys, tuples))

    def may_grow(self, keys: Keys) -> bool:
        """Whether the map join may find more keys than these, in the names of partitions."""
        return self._hand_over and bool(keys.source.skeletons)

    def tables_of_names(self) -> set[Table]:
        """The tables from whose partition names growing keys come."""
        return {
            table for keys in self.keys if self.may_grow(keys) for _, table in keys.source.skeletons
        }

    def wanted(self, tuples: Sequence[tuple[Keys, Tuples]]) -> list[tuple[list[int], Tuples]]:
        """The tuples with the positions of their partition columns."""
        return [
            ([self.columns.index(name) for name in keys.source.partition_columns], rows)
            for keys, rows in tuples
        ]

    @property
    def values(self) -> list[Value]:
        """All values of the tuples."""
        return [value for _, tuples in self.tuples for row in tuples for value in row]

    def asked(self, partitions: list[Partition], keys: Sequence[Keys]) -> None:
        """Stores the found partitions, and the keys that were used to find them."""
        self.partitions = partitions
        self.used.extend(keys)
        self.answered = True

    def leave_out_by_names(self, before: list[Partition], after: list[Partition]) -> None:
        """Stores the partitions that growing keys have left out."""
        kept = {part.values for part in after}
        self._left_out_by_names += (part for part in before if part.values not in kept)

    def new_partitions(self) -> NewPartitions | None:
        """What to read of the partitions that are added later; ``None`` if no key can match."""
        if self.candidates is None:
            return None
        by_names = tuple(part.values for part in self._left_out_by_names)
        known = {part.values for part in self.partitions}.union(by_names)
        keys = (KeyTuples.of(keys.source.partition_columns, rows) for keys, rows in self.tuples)
        left_out = (part.values for part in self.candidates if part.values not in known)
        return NewPartitions(tuple(keys), tuple(left_out), by_names, self.names)


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
    decision: ScanDecision,
    relation: TableRelation,
    selections: Sequence[Selection],
    total: int,
    hand_over: bool,
) -> Target:
    """The descriptor's entry for a scan, with one selection for each alternative.

    ``hand_over`` says that another application reads the descriptor.
    """
    columns = relation.table.scanned.partition_columns
    filter_ = _any_of([selection.filter for selection in selections])
    later: list[NewPartitions | None] = []
    if hand_over and filter_ is None:
        later = [selection.new_partitions() for selection in selections]
    sources = [
        SourceKeys(keys.source.aliases, keys.source.name, keys.source.sql, keys.count)
        for selection in selections
        for keys in selection.used
    ]
    names = {column.name: name for name, column in relation.table.visible_pruning_columns}
    return Target(
        scan=decision.scan,
        text=relation.text,
        aliased=relation.aliased,
        columns=tuple(column.name for column in columns),
        types=tuple(column.type for column in columns),
        pruned_columns=decision.columns,
        visible_columns=tuple(names[column] for column in decision.columns),
        location=decision.table.location,
        partitions=union_of(selections),
        total=total,
        path=_path(selections).value,
        filter=filter_,
        sources=tuple(dict.fromkeys(sources)),
        new_partitions=tuple(each for each in later if each is not None),
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
    a_value = max(map(len, selection.columns)) + len(' = "" or ')
    texts = sum(len(str(value).encode()) + a_value for value in selection.values)
    return texts > FILTER_ON_GLUE


def filter_of(selection: Selection, conditions: Sequence[PartitionCondition]) -> str | None:
    """All keys and conditions as one SQL condition, which the map join stage can evaluate again.

    ``None`` if they can't be written as one condition on the scan's partition columns.
    """
    values, alias = selection.values, selection.decision.scan.alias
    plain = len(values) <= VALUES_A_FILTER and all(map(is_plain, values))
    names_the_null = selection.decision.table.by_serde and DEFAULT_PARTITION in values
    at_the_scan = all(len(condition.layers) == 1 for condition in conditions)
    if selection.compared or selection.growing or not plain or names_the_null or not at_the_scan:
        return None
    parts = [
        f"({tuples_condition(alias, keys.source.partition_columns, tuples)})"
        for keys, tuples in selection.tuples
    ]
    return " AND ".join([*parts, *(f"({condition.sql})" for condition in conditions)])


def is_too_long(target: Target) -> bool:
    """Whether one scan's partitions and keys have too many characters for a descriptor."""
    rows = [part.values for part in target.partitions]
    texts = [part.location for part in target.partitions]
    for each in target.new_partitions:
        rows += (*each.left_out, *each.left_out_by_names)
        texts += (text for keys in each.keys for column in keys.values for text in column)
    texts += (text for row in rows for text in row)
    return _A_PARTITION * len(rows) + sum(map(len, filter(None, texts))) > _LONGEST_LIST
