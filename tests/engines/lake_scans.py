"""Scans of tables that keep their own list of files.

Only Spark prunes them, so these descriptors are made here as its local task makes them;
``tests/lakes`` has some that Spark has made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from airflow_hive_opt.documents.descriptor import (
    Decision,
    Descriptor,
    PlannedFiles,
    RowFilter,
    SourceKeys,
    decode,
    encode,
    now,
)
from airflow_hive_opt.engines.scan import PrunedScan, scan_of
from airflow_hive_opt.engines.values import microseconds
from airflow_hive_opt.statement.scan_ref import ScanRef

SCAN = ScanRef("t", "lake.dw.sales", (14, 27), "t")


def filter_on(
    column: str, type_: str, values: Iterable[Any], is_range: bool = False, scan: ScanRef = SCAN
) -> RowFilter:
    """The condition on a column of MERGE's target, from the source's column of the same name."""
    texts = (str(microseconds(v)) if isinstance(v, datetime) else str(v) for v in values)
    source = SourceKeys(("s",), "changes", "SELECT 1", 1)
    return RowFilter(
        scan, "sales", True, column, type_, tuple(texts), is_range, source, f"`s`.`{column}`"
    )


def lake_scan(*filters: RowFilter) -> PrunedScan:
    """What the statement reads of the table."""
    return scan_of(descriptor_of(filters), "lake.dw.sales")


def descriptor_of(filters: Sequence[RowFilter]) -> Descriptor:
    """The descriptor, as a reader gets it."""
    scans = dict.fromkeys(found.scan for found in filters)
    return decode(
        encode(
            Descriptor(
                "",
                now(),
                (),
                tuple(Decision(scan, "RESTRICTED", "by its files") for scan in scans),
                tuple(filters),
                tuple(PlannedFiles(scan, None) for scan in scans),
            )
        )
    )
