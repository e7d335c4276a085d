"""The reasons why a scan is pruned or not: a closed list, with one sentence for each."""

from __future__ import annotations

from airflow_hive_opt.statement.text_enum import StrEnum


class Reason(StrEnum):
    """A reason code; :attr:`sentence` explains it."""

    PRUNED = "PRUNED"
    DISABLED = "DISABLED"
    PASSED_THROUGH = "PASSED_THROUGH"
    PARTITIONS_NOT_IN_METASTORE = "PARTITIONS_NOT_IN_METASTORE"
    SCAN_NOT_RESTRICTABLE = "SCAN_NOT_RESTRICTABLE"
    NO_CONDITION_ON_PARTITION_COLUMN = "NO_CONDITION_ON_PARTITION_COLUMN"
    MIXED_WITH_DATA_COLUMNS = "MIXED_WITH_DATA_COLUMNS"
    CONDITION_NOT_SELF_CONTAINED = "CONDITION_NOT_SELF_CONTAINED"
    CONDITION_NOT_DETERMINISTIC = "CONDITION_NOT_DETERMINISTIC"
    VALUE_CHANGED = "VALUE_CHANGED"
    PRESERVED_SIDE = "PRESERVED_SIDE"
    NULLS_MAY_MATCH = "NULLS_MAY_MATCH"
    KEYS_NOT_CONNECTED = "KEYS_NOT_CONNECTED"
    KEY_SOURCE_NOT_PLANNED = "KEY_SOURCE_NOT_PLANNED"
    KEY_SOURCE_NOT_DETERMINISTIC = "KEY_SOURCE_NOT_DETERMINISTIC"
    KEY_SOURCE_NOT_SMALL = "KEY_SOURCE_NOT_SMALL"
    KEY_SOURCE_LARGER_THAN_TABLE = "KEY_SOURCE_LARGER_THAN_TABLE"
    TOO_FEW_PARTITIONS = "TOO_FEW_PARTITIONS"
    TYPE_NOT_COMPARABLE = "TYPE_NOT_COMPARABLE"
    KEY_SOURCE_FAILED = "KEY_SOURCE_FAILED"
    TOO_MANY_KEYS = "TOO_MANY_KEYS"
    KEYS_TOO_LARGE = "KEYS_TOO_LARGE"
    LIST_TOO_LARGE = "LIST_TOO_LARGE"
    ALL_PARTITIONS_MATCH = "ALL_PARTITIONS_MATCH"
    MOST_PARTITIONS_MATCH = "MOST_PARTITIONS_MATCH"
    KEYS_IN_MOST_ROW_GROUPS = "KEYS_IN_MOST_ROW_GROUPS"

    @property
    def sentence(self) -> str:
        """The meaning of the code, for logs and reports."""
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
    Reason.NO_CONDITION_ON_PARTITION_COLUMN: (
        "no join condition and no predicate reads a partition column"
    ),
    Reason.MIXED_WITH_DATA_COLUMNS: (
        "the condition reads data columns of the table beside the partition column, so no "
        "partition can be ruled out by its values alone"
    ),
    Reason.CONDITION_NOT_SELF_CONTAINED: (
        "the condition holds a subquery, a column of an outer query or a positional parameter"
    ),
    Reason.CONDITION_NOT_DETERMINISTIC: (
        "the condition calls a function that may give another value each time, or one that the "
        "planner does not know"
    ),
    Reason.VALUE_CHANGED: (
        "the partition column passes through an aggregate, a window, a LIMIT or an expression that "
        "needs other columns before it reaches the condition"
    ),
    Reason.PRESERVED_SIDE: (
        "the table is on the preserved side of the outer join, which must return all its rows"
    ),
    Reason.NULLS_MAY_MATCH: (
        "the condition may be fulfilled by NULLs that an outer join puts in place of rows"
    ),
    Reason.KEYS_NOT_CONNECTED: (
        "the condition reads several small tables that no equality joins with each other"
    ),
    Reason.KEY_SOURCE_NOT_PLANNED: (
        "the other side is no table and no query whose text stands for itself"
    ),
    Reason.KEY_SOURCE_NOT_DETERMINISTIC: (
        "the small side may give other rows each time it is read (rand, TABLESAMPLE, LIMIT, "
        "current_date and the like), so keys taken early could differ from the join's"
    ),
    Reason.KEY_SOURCE_NOT_SMALL: (
        "the other side of the join is larger than hive.mapjoin.smalltable.filesize, "
        "or it is partitioned and its size is not known"
    ),
    Reason.KEY_SOURCE_LARGER_THAN_TABLE: (
        "reading the keys would cost more than the scan can save: the other side is larger than "
        "the table"
    ),
    Reason.TOO_FEW_PARTITIONS: "the table has one partition at most, so there is nothing to choose",
    Reason.TYPE_NOT_COMPARABLE: (
        "a partition column has a type whose values can't be read off partition names (CHAR, "
        "FLOAT, DOUBLE, BINARY, TIMESTAMP_NTZ)"
    ),
    Reason.KEY_SOURCE_FAILED: (
        "Spark could not run the key query or answer which partitions match; the log says why"
    ),
    Reason.TOO_MANY_KEYS: "the small side has more distinct keys than max_keys allows",
    Reason.KEYS_TOO_LARGE: (
        "one key of the small side is longer than 16 KiB, or all keys together are more than "
        "max_key_bytes allows"
    ),
    Reason.LIST_TOO_LARGE: (
        "the list of the partitions to read is too long for a descriptor: more than 32 MiB"
    ),
    Reason.ALL_PARTITIONS_MATCH: (
        "every partition is called for, so there was nothing to leave out"
    ),
    Reason.MOST_PARTITIONS_MATCH: (
        "so many of the table's many partitions are called for that naming them would cost more "
        "than leaving out the rest saves"
    ),
    Reason.KEYS_IN_MOST_ROW_GROUPS: (
        "the files are not clustered by the key or have no statistics on it (no Parquet or ORC, "
        "other types), or a key has odd characters: a condition on it would skip too little"
    ),
}
