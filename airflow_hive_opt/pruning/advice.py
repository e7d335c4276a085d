"""What to do about a scan that is not pruned: one sentence for each reason."""

from __future__ import annotations

from airflow_hive_opt.pruning.reasons import Reason

_NO_HELP = "Nothing, because pruning can't help this statement."
_SAME_EACH_TIME = "Pass the value as a parameter or as {{ ds }}."

ADVICE = {
    Reason.DISABLED: "Remove partition_pruning=False.",
    Reason.PASSED_THROUGH: (
        "Read the rest of the message, and move the part that the planner does not know to a "
        "separate statement or a view."
    ),
    Reason.PLANNING_TOO_LONG: "Put long lists into a table, or raise planning_seconds.",
    Reason.LEFT_TO_SPARK: (
        "Nothing, because the task's runs go the quickest way, and about every tenth run compares."
    ),
    Reason.PARTITIONS_NOT_IN_METASTORE: "Nothing, because this package can't prune such a table.",
    Reason.TRANSACTIONAL_TABLE: (
        "In Hive, copy the table to one that is not transactional. Spark may return wrong rows "
        "from a transactional table."
    ),
    Reason.SCAN_NOT_RESTRICTABLE: (
        "Read the sample, the version or the hidden columns in a separate statement, and use "
        "aliases instead of database names in front of columns."
    ),
    Reason.NO_CONDITION_ON_PARTITION_COLUMN: (
        "Join on the partition column; DESCRIBE shows its name."
    ),
    Reason.MIXED_WITH_DATA_COLUMNS: "Write the partition condition as a separate AND term.",
    Reason.CONDITION_NOT_SELF_CONTAINED: "Use a join, or a named parameter (:name).",
    Reason.CONDITION_NOT_DETERMINISTIC: _SAME_EACH_TIME,
    Reason.VALUE_CHANGED: "Join first, then aggregate.",
    Reason.NOT_MATCHED_BY_SOURCE: (
        "Do the work of WHEN NOT MATCHED BY SOURCE in a separate statement."
    ),
    Reason.KEYS_OF_THE_TARGET: "Take the keys from a table that the statement does not change.",
    Reason.PRESERVED_SIDE: "Use an inner join if the result allows it.",
    Reason.NULLS_MAY_MATCH: (
        "Write a condition that NULL does not fulfil, such as d.year = 2000 instead of "
        "coalesce(d.year, 2000) = 2000."
    ),
    Reason.KEYS_NOT_CONNECTED: "Join the small tables with each other.",
    Reason.KEY_SOURCE_NOT_PLANNED: "Write the other side as a table, a CTE or a subquery.",
    Reason.KEY_SOURCE_NOT_DETERMINISTIC: _SAME_EACH_TIME,
    Reason.KEY_SOURCE_TRANSACTIONAL: (
        "In Hive, copy the table to one that is not transactional. Spark may return wrong rows "
        "from a transactional table."
    ),
    Reason.PYTHON_FUNCTION: (
        "Write the function in SQL, or set python_functions=True, if it always returns the same "
        "value for the same arguments."
    ),
    Reason.NOT_HANDED_OVER: (
        "Write the function as CREATE FUNCTION ... RETURN and the view as CREATE VIEW, or run both "
        "stages in one task with MapJoinPruneOperator."
    ),
    Reason.KEY_SOURCE_NOT_SMALL: (
        "Run ANALYZE TABLE ... COMPUTE STATISTICS on the small table, or raise "
        "hive.mapjoin.smalltable.filesize in hive_conf."
    ),
    Reason.KEY_SOURCE_LARGER_THAN_TABLE: (
        "Run ANALYZE TABLE ... COMPUTE STATISTICS on both tables, if their sizes are wrong."
    ),
    Reason.KEYS_NOT_COMPARED_AS_COLUMNS: (
        "Compare the bare column with a key column of the same type."
    ),
    Reason.TOO_FEW_PARTITIONS: _NO_HELP,
    Reason.TYPE_NOT_COMPARABLE: "Use STRING, DATE or an integer as partition type.",
    Reason.KEY_SOURCE_FAILED: "Look for the error of the key query or of the metastore in the log.",
    Reason.TOO_MANY_KEYS: "Filter the small table, or raise max_keys.",
    Reason.KEYS_TOO_LARGE: "Filter the small table, or raise max_key_bytes.",
    Reason.LIST_TOO_LARGE: "Restrict the statement to fewer partitions.",
    Reason.NOT_ASKED_AGAIN: (
        "Nothing, because about every tenth run reads the keys again, and so does a run with other "
        "keys, conditions or parameters."
    ),
    Reason.ALL_PARTITIONS_MATCH: _NO_HELP,
    Reason.MOST_PARTITIONS_MATCH: _NO_HELP,
    Reason.ALL_FILES_MATCH: _NO_HELP,
    Reason.MOST_FILES_MATCH: _NO_HELP,
    Reason.KEYS_IN_MOST_ROW_GROUPS: "Sort the table's files by this column.",
    Reason.SOURCE_CHANGED: (
        "Nothing, unless it happens often: then let the writer of the source end first."
    ),
}
"""By reason; those that say that a scan is pruned or restricted need none."""

_BY_CODE = {reason.value: advice for reason, advice in ADVICE.items()}


def advice_on(code: str) -> str | None:
    """The advice on a reason code, perhaps of another version; ``None`` if there is none.

    >>> advice_on("VALUE_CHANGED"), advice_on("PRUNED"), advice_on("OF_ANOTHER_VERSION")
    ('Join first, then aggregate.', None, None)
    """
    return _BY_CODE.get(code)
