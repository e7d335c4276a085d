"""A descriptor with markup and formulas in its partitions."""

from __future__ import annotations

from airflow_hive_opt.runtime.descriptor import Decision, Descriptor, SourceKeys, Target, now
from airflow_hive_opt.runtime.partitions import Partition

EVIL = "<script>alert('&')</script>"


def descriptor(kept: int = 250) -> Descriptor:
    values = [(None, EVIL), *((f"2026-01-{day:03}", "=1+1") for day in range(kept - 1))]
    target = Target(
        alias="f",
        table="dw.fact",
        text="fact",
        aliased=True,
        reference=(22, 26),
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
        Decision("f", "dw.fact", "PRUNED", "only those"),
        Decision("g", "dw.fact2", "PRESERVED_SIDE", "the table is preserved"),
    )
    return Descriptor("0" * 64, now(), (target,), decisions)
