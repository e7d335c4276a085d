"""The partitions of a table that a run reads in all its scans, from its descriptor."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hive_opt.documents.descriptor import Descriptor, Target
from airflow_hive_opt.documents.report import scans
from airflow_hive_opt.metastores.partitions import DEFAULT_PARTITION


@dataclass(frozen=True)
class PartitionsRead:
    """A table's partition columns, and the values of the partitions that are read.

    The values are texts, as in the metastore; NULL is ``__HIVE_DEFAULT_PARTITION__``.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def partitions_read(descriptor: Descriptor) -> dict[str, PartitionsRead]:
    """The partitions that a run reads, by ``database.table``; no table with an unpruned scan."""
    found: dict[str, tuple[tuple[str, ...], dict[tuple[str, ...], None]]] = {}
    whole = set()
    for decision, target in scans(descriptor):
        if not isinstance(target, Target):
            whole.add(decision.scan.table)
            continue
        _, values = found.setdefault(target.scan.table, (target.columns, {}))
        for partition in target.partitions:
            values[tuple(value or DEFAULT_PARTITION for value in partition.values)] = None
    return {
        table: PartitionsRead(columns, tuple(values))
        for table, (columns, values) in found.items()
        if table not in whole
    }
