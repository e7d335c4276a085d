"""What the page of a run says of an Iceberg table, with the descriptor and without it."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from airflow_hive_opt.documents.descriptor import (
    Decision,
    Descriptor,
    PlannedFiles,
    RowFilter,
    SourceKeys,
    now,
)
from airflow_hive_opt.documents.figures import figures_of
from airflow_hive_opt.documents.report import Report
from airflow_hive_opt.pages.instance import Known, instance_of
from airflow_hive_opt.pages.task_run import InstanceKey, TaskRun
from airflow_hive_opt.statement.scan_ref import ScanRef

ORDERS = ScanRef("o", "lake.shop.orders", (14, 20), "o")
KEYS = SourceKeys(("c",), "changed", "SELECT DISTINCT c.day FROM changed c", 5)
DESCRIPTOR = Descriptor(
    "0" * 64,
    now(),
    (),
    (Decision(ORDERS, "RESTRICTED", "by its files"),),
    (RowFilter(ORDERS, "orders", True, "day", "date", (), False, KEYS),),
    (PlannedFiles(ORDERS, "false", 5, 5, 40, 1000, 8000),),
)


@pytest.mark.parametrize(
    ("descriptor", "headline"),
    [
        (DESCRIPTOR, "5 of 1,000 files of orders by day in 5 keys of changed"),
        (None, "conditions with the keys restricted the scans"),
    ],
)
def test_the_page_of_a_run_shows_the_files_of_an_iceberg_table(descriptor, headline):
    summary = Report(DESCRIPTOR, "s3://b/1.json").summary()
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    run = TaskRun(
        InstanceKey("d", "t", "r", -1), figures_of(summary), at, at, 1, "success", at, 1.0
    )
    known = Known(run, {"return_value": summary}, {}, descriptor, None, "deleted", "")
    found = instance_of(known)
    (scan,) = found.scans
    assert (scan.files, scan.total_files, scan.kept) == (5, 1000, None)
    assert (found.headline, found.reason) == (headline, "PRUNED")
