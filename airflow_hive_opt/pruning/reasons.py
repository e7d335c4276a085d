"""The reasons why a scan is pruned or not: a closed list, with one sentence for each."""

from __future__ import annotations

from airflow_hive_opt.statement.text_enum import StrEnum


class Reason(StrEnum):
    """A reason code; :attr:`sentence` explains it."""

    PRUNED = "PRUNED"
    RESTRICTED = "RESTRICTED"
    OWN_CONDITION = "OWN_CONDITION"
    DISABLED = "DISABLED"
    PASSED_THROUGH = "PASSED_THROUGH"
    PLANNING_TOO_LONG = "PLANNING_TOO_LONG"
    LEFT_TO_SPARK = "LEFT_TO_SPARK"
    PARTITIONS_NOT_IN_METASTORE = "PARTITIONS_NOT_IN_METASTORE"
    TRANSACTIONAL_TABLE = "TRANSACTIONAL_TABLE"
    SCAN_NOT_RESTRICTABLE = "SCAN_NOT_RESTRICTABLE"
    NO_CONDITION_ON_PARTITION_COLUMN = "NO_CONDITION_ON_PARTITION_COLUMN"
    MIXED_WITH_DATA_COLUMNS = "MIXED_WITH_DATA_COLUMNS"
    CONDITION_NOT_SELF_CONTAINED = "CONDITION_NOT_SELF_CONTAINED"
    CONDITION_NOT_DETERMINISTIC = "CONDITION_NOT_DETERMINISTIC"
    VALUE_CHANGED = "VALUE_CHANGED"
    NOT_MATCHED_BY_SOURCE = "NOT_MATCHED_BY_SOURCE"
    KEYS_OF_THE_TARGET = "KEYS_OF_THE_TARGET"
    PRESERVED_SIDE = "PRESERVED_SIDE"
    NULLS_MAY_MATCH = "NULLS_MAY_MATCH"
    KEYS_NOT_CONNECTED = "KEYS_NOT_CONNECTED"
    KEY_SOURCE_NOT_PLANNED = "KEY_SOURCE_NOT_PLANNED"
    KEY_SOURCE_NOT_DETERMINISTIC = "KEY_SOURCE_NOT_DETERMINISTIC"
    KEY_SOURCE_TRANSACTIONAL = "KEY_SOURCE_TRANSACTIONAL"
    PYTHON_FUNCTION = "PYTHON_FUNCTION"
    KEY_SOURCE_NOT_SMALL = "KEY_SOURCE_NOT_SMALL"
    KEY_SOURCE_LARGER_THAN_TABLE = "KEY_SOURCE_LARGER_THAN_TABLE"
    NOT_HANDED_OVER = "NOT_HANDED_OVER"
    KEYS_NOT_COMPARED_AS_COLUMNS = "KEYS_NOT_COMPARED_AS_COLUMNS"
    TOO_FEW_PARTITIONS = "TOO_FEW_PARTITIONS"
    TYPE_NOT_COMPARABLE = "TYPE_NOT_COMPARABLE"
    KEY_SOURCE_FAILED = "KEY_SOURCE_FAILED"
    TOO_MANY_KEYS = "TOO_MANY_KEYS"
    KEYS_TOO_LARGE = "KEYS_TOO_LARGE"
    LIST_TOO_LARGE = "LIST_TOO_LARGE"
    NOT_ASKED_AGAIN = "NOT_ASKED_AGAIN"
    ALL_PARTITIONS_MATCH = "ALL_PARTITIONS_MATCH"
    MOST_PARTITIONS_MATCH = "MOST_PARTITIONS_MATCH"
    ALL_FILES_MATCH = "ALL_FILES_MATCH"
    MOST_FILES_MATCH = "MOST_FILES_MATCH"
    KEYS_IN_MOST_ROW_GROUPS = "KEYS_IN_MOST_ROW_GROUPS"
    SOURCE_CHANGED = "SOURCE_CHANGED"

    @property
    def sentence(self) -> str:
        """The meaning of the code, for logs and reports."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.PRUNED: "only the partitions that match the keys or conditions are read",
    Reason.RESTRICTED: (
        "the scan has a condition with the keys, by which the table's own metadata skips files"
    ),
    Reason.OWN_CONDITION: (
        "the statement's own condition selects the scan's files, and Spark gives the table this "
        "condition"
    ),
    Reason.DISABLED: "partition_pruning is False",
    Reason.PASSED_THROUGH: (
        "the planner does not support this part of the statement, so it passes through to Spark"
    ),
    Reason.PLANNING_TOO_LONG: (
        "the planning of the statement takes longer than planning_seconds, so it passes through "
        "to Spark"
    ),
    Reason.LEFT_TO_SPARK: (
        "the task compares the times of its runs, and this run leaves the statement to Spark as it "
        "is"
    ),
    Reason.PARTITIONS_NOT_IN_METASTORE: (
        "the metastore does not manage the table's partitions, so it can't list them"
    ),
    Reason.TRANSACTIONAL_TABLE: (
        "Hive's transactions (ACID) decide which of the table's files count, and Spark does not "
        "know them"
    ),
    Reason.SCAN_NOT_RESTRICTABLE: (
        "the table reference can't take a condition: it is sampled or versioned, another part "
        "of the statement qualifies a column with its database, or the statement reads hidden "
        "columns"
    ),
    Reason.NO_CONDITION_ON_PARTITION_COLUMN: (
        "no join condition and no predicate reads a partition column"
    ),
    Reason.MIXED_WITH_DATA_COLUMNS: (
        "the condition also reads data columns of the table, so partition values alone can't "
        "exclude a partition"
    ),
    Reason.CONDITION_NOT_SELF_CONTAINED: (
        "the condition contains a subquery, a column of an outer query or a positional parameter"
    ),
    Reason.CONDITION_NOT_DETERMINISTIC: (
        "the condition calls a function that may return another value each time, or that the "
        "planner does not know"
    ),
    Reason.VALUE_CHANGED: (
        "before the partition column reaches the condition, it passes through an aggregate, a "
        "window, a LIMIT or an expression that also reads other columns"
    ),
    Reason.NOT_MATCHED_BY_SOURCE: (
        "WHEN NOT MATCHED BY SOURCE reads every row of the target, whatever the keys are"
    ),
    Reason.KEYS_OF_THE_TARGET: (
        "the keys would come from the table that the statement changes, and another run may "
        "change that table first"
    ),
    Reason.PRESERVED_SIDE: (
        "the table is on the preserved side of an outer join, which returns all its rows"
    ),
    Reason.NULLS_MAY_MATCH: (
        "NULLs that an outer join puts in place of rows may fulfil the condition"
    ),
    Reason.KEYS_NOT_CONNECTED: (
        "the condition reads several small tables that are not joined with each other by equality"
    ),
    Reason.KEY_SOURCE_NOT_PLANNED: (
        "the other side of the join is neither a table nor a query that can run alone"
    ),
    Reason.KEY_SOURCE_NOT_DETERMINISTIC: (
        "the small table may return other rows each time it is read (rand, TABLESAMPLE, LIMIT, "
        "current_date and similar), so its keys could differ from those of the join"
    ),
    Reason.KEY_SOURCE_TRANSACTIONAL: (
        "the small table is transactional in Hive (ACID), so its files do not say which rows it has"
    ),
    Reason.PYTHON_FUNCTION: (
        "the keys depend on a Python function, which may return another value each time although "
        "it does not declare so; python_functions=True uses these keys"
    ),
    Reason.KEY_SOURCE_NOT_SMALL: (
        "the other side of the join is larger than hive.mapjoin.smalltable.filesize, or it is "
        "partitioned and its size is not known"
    ),
    Reason.KEY_SOURCE_LARGER_THAN_TABLE: (
        "the other side of the join is larger than the table, so reading its keys would cost "
        "more than pruning saves"
    ),
    Reason.NOT_HANDED_OVER: (
        "the keys depend on a function of Python or Java, on the view of a data frame, on a view "
        "that can't be read, or on the partition names of another table, which may be others in "
        "the task that runs the join"
    ),
    Reason.KEYS_NOT_COMPARED_AS_COLUMNS: (
        "no condition is an equality of one of the table's columns with a key column of a similar "
        "type, from which a list of values can be made"
    ),
    Reason.TOO_FEW_PARTITIONS: "the table has at most one partition, so there is nothing to prune",
    Reason.TYPE_NOT_COMPARABLE: (
        "a partition column has a type whose values can't be parsed from partition names (CHAR, "
        "FLOAT, DOUBLE, BINARY, TIMESTAMP_NTZ)"
    ),
    Reason.KEY_SOURCE_FAILED: "the key query or the partition lookup failed; the log says why",
    Reason.TOO_MANY_KEYS: "the small table has more distinct keys than max_keys allows",
    Reason.KEYS_TOO_LARGE: "a key is longer than 16 KiB, or all keys together exceed max_key_bytes",
    Reason.LIST_TOO_LARGE: "the partition list exceeds the 32 MiB that a descriptor can hold",
    Reason.NOT_ASKED_AGAIN: (
        "nearly all partitions or files matched the same keys in an earlier run, so this run does "
        "not read the keys; about every tenth run does"
    ),
    Reason.ALL_PARTITIONS_MATCH: "every partition matches the keys, so nothing is pruned",
    Reason.MOST_PARTITIONS_MATCH: (
        "nearly all of the table's partitions match the keys, so a partition list would cost "
        "more than it saves"
    ),
    Reason.ALL_FILES_MATCH: "by the table's metadata, each of its files may contain the keys",
    Reason.MOST_FILES_MATCH: (
        "by the table's metadata, nearly all of its files may contain the keys, so a condition "
        "would cost more than it saves"
    ),
    Reason.KEYS_IN_MOST_ROW_GROUPS: (
        "a condition on the key would skip too little: the files are not clustered by the key, "
        "they have no usable statistics on it (not Parquet or ORC, or another type), or a key "
        "contains special characters"
    ),
    Reason.SOURCE_CHANGED: (
        "MERGE's source has a row whose key was not among those that were read, so the statement "
        "ran without keys"
    ),
}
