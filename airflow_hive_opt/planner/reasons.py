"""Why a scan is pruned or left whole: a closed list, one sentence each."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A reason code; :attr:`sentence` says it to people."""

    PRUNED = "PRUNED"
    DISABLED = "DISABLED"
    PASSED_THROUGH = "PASSED_THROUGH"
    PARTITIONS_NOT_IN_METASTORE = "PARTITIONS_NOT_IN_METASTORE"
    SCAN_NOT_RESTRICTABLE = "SCAN_NOT_RESTRICTABLE"
    NO_JOIN_ON_PARTITION_COLUMN = "NO_JOIN_ON_PARTITION_COLUMN"
    NOT_EQUALITY = "NOT_EQUALITY"
    FUNCTION_ON_KEY = "FUNCTION_ON_KEY"
    VALUE_CHANGED = "VALUE_CHANGED"
    PRESERVED_SIDE = "PRESERVED_SIDE"
    FUNCTION_ON_SMALL_KEY = "FUNCTION_ON_SMALL_KEY"
    KEY_SOURCE_NOT_PLANNED = "KEY_SOURCE_NOT_PLANNED"
    KEY_SOURCE_NOT_DETERMINISTIC = "KEY_SOURCE_NOT_DETERMINISTIC"
    KEY_SOURCE_NOT_SMALL = "KEY_SOURCE_NOT_SMALL"
    KEY_TYPE_DIFFERS = "KEY_TYPE_DIFFERS"
    KEY_SOURCE_FAILED = "KEY_SOURCE_FAILED"
    TOO_MANY_KEYS = "TOO_MANY_KEYS"

    @property
    def sentence(self) -> str:
        """What the code means, for people."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.PRUNED: "only the partitions that the small tables' keys call for are scanned",
    Reason.DISABLED: "hive.optimize.mapjoin.partition.pruning is off",
    Reason.PASSED_THROUGH: (
        "this part of the statement passes through to Spark as it is, since the planner "
        "does not know its form"
    ),
    Reason.PARTITIONS_NOT_IN_METASTORE: (
        "the table's partitions are not managed by the metastore, so it can't be asked for them"
    ),
    Reason.SCAN_NOT_RESTRICTABLE: (
        "the table reference can't be narrowed in place: it is sampled, versioned, named with its "
        "database elsewhere in the statement, or its hidden columns are read"
    ),
    Reason.NO_JOIN_ON_PARTITION_COLUMN: "no join condition compares a partition column",
    Reason.NOT_EQUALITY: "the partition column is compared, but not by =",
    Reason.FUNCTION_ON_KEY: "the partition column is inside a function in the join condition",
    Reason.VALUE_CHANGED: (
        "the partition column passes through an expression, aggregate, window or LIMIT "
        "before it reaches the join"
    ),
    Reason.PRESERVED_SIDE: (
        "the table is on the preserved side of the outer join, which must return all its rows"
    ),
    Reason.FUNCTION_ON_SMALL_KEY: (
        "the small table's key is inside a function or expression in the join condition"
    ),
    Reason.KEY_SOURCE_NOT_PLANNED: (
        "the other side of the join is no table and no self-contained subquery"
    ),
    Reason.KEY_SOURCE_NOT_DETERMINISTIC: (
        "the small side may give other rows each time it is read (rand, TABLESAMPLE, LIMIT, "
        "current_date and the like), so keys taken early could differ from the join's"
    ),
    Reason.KEY_SOURCE_NOT_SMALL: (
        "the other side of the join is larger than hive.mapjoin.smalltable.filesize, "
        "or it is partitioned and its size is not known"
    ),
    Reason.KEY_TYPE_DIFFERS: (
        "the key and the partition column have different types, or a type whose values can't be "
        "compared as text"
    ),
    Reason.KEY_SOURCE_FAILED: (
        "Spark could not run the key query or answer which partitions match; the log says why"
    ),
    Reason.TOO_MANY_KEYS: "the small side has more distinct keys than max_keys allows",
}
