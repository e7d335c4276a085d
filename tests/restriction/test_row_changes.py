"""Conditions on the target of a statement that changes rows, in the statement's own condition."""

from __future__ import annotations

from airflow_hive_opt.documents.descriptor import Changes, RowFilter, SourceKeys
from airflow_hive_opt.restriction.row_changes import change_edits
from airflow_hive_opt.statement.edits import spliced
from airflow_hive_opt.statement.scan_ref import ScanRef


def test_the_whole_condition_of_the_statement_and_the_keys_must_be_true():
    """AND binds more than the OR of the statement."""
    condition = "t.day = s.day OR t.day = s.next"
    sql = f"MERGE INTO t USING s ON {condition} WHEN MATCHED THEN DELETE"
    start = sql.index(condition)
    found = RowFilter(
        scan=ScanRef("t", "db.t", (11, 12), "t"),
        text="t",
        aliased=False,
        column="day",
        type="date",
        values=("2024-01-03",),
        is_range=False,
        source=SourceKeys(("s",), "s", "SELECT day FROM s", 1),
    )
    edits = change_edits(Changes((11, 12), (start, start + len(condition))), [found])
    assert spliced(sql, list(edits)) == (
        f"MERGE INTO t USING s ON ({condition}) AND (`t`.`day` IN (DATE'2024-01-03')) "
        "WHEN MATCHED THEN DELETE"
    )
