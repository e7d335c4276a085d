"""A descriptor with markup and formulas in its partitions."""

from __future__ import annotations

from airflow_hive_opt.documents.descriptor import Decision, Descriptor, SourceKeys, Target, now
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.statement.scan_ref import ScanRef

FACT2 = ScanRef("g", "dw.fact2", (62, 67), "g")
EVIL = "<script>alert('&')</script>"


def descriptor(kept: int = 250) -> Descriptor:
    values = [(None, EVIL), *((f"2026-01-{day:03}", "=1+1") for day in range(kept - 1))]
    target = Target(
        scan=ScanRef("f", "dw.fact", (23, 27), "f"),
        text="fact",
        aliased=True,
        columns=("ds", "region"),
        types=("string", "string"),
        pruned_columns=("ds",),
        visible_columns=("ds",),
        location="file:/w/fact",
        partitions=tuple(Partition(each, location=None) for each in values),
        total=1000,
        path="fast",
        filter=None,
        sources=(SourceKeys(("d",), "days", f"SELECT DISTINCT d.ds FROM days /* {EVIL} */", 250),),
    )
    decisions = (
        Decision(target.scan, "PRUNED", "only those"),
        Decision(FACT2, "PRESERVED_SIDE", "the table is preserved"),
    )
    return Descriptor("0" * 64, now(), (target,), decisions)
