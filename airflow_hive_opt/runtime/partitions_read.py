"""Which partitions of a table a run reads, by its descriptor: all its scans together."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hive_opt.runtime.descriptor import Descriptor
from airflow_hive_opt.runtime.partitions import DEFAULT_PARTITION
from airflow_hive_opt.runtime.report import scans


@dataclass(frozen=True)
class PartitionsRead:
    """A table's partition columns and the values of what is read, text as the metastore has it.

    NULL is ``__HIVE_DEFAULT_PARTITION__``.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def partitions_read(descriptor: Descriptor) -> dict[str, PartitionsRead]:
    """By ``database.table``; a table that any scan reads whole is left out."""
    found: dict[str, tuple[tuple[str, ...], dict[tuple[str, ...], None]]] = {}
    whole = set()
    for decision, target in scans(descriptor):
        if target is None:
            whole.add(decision.table)
            continue
        _, values = found.setdefault(target.table, (target.columns, {}))
        for partition in target.partitions:
            values[tuple(value or DEFAULT_PARTITION for value in partition.values)] = None
    return {
        table: PartitionsRead(columns, tuple(values))
        for table, (columns, values) in found.items()
        if table not in whole
    }
