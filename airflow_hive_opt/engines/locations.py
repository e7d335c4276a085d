"""The folders of the partitions to read, from a metastore."""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.metastores.metastore import Metastore


def located(scan: PrunedScan, metastore: Metastore) -> PrunedScan:
    """The scan with the folder of each partition; partitions that are gone are left out.

    The local task does not fetch folders if the names of partitions were enough to find them.
    Raises :class:`EngineError`, and
    :class:`~airflow_hive_opt.metastores.metastore.MetastoreError`.
    """
    if scan.partitions is None or all(found.location for found in scan.partitions):
        return scan
    table = metastore.table(scan.table)
    if table is None:
        raise EngineError(f"the metastore has no table {scan.table}")
    columns = tuple(column.name for column in table.partition_columns)
    types = tuple(column.type for column in table.partition_columns)
    if (columns, types) != (scan.columns, scan.types):
        raise EngineError(
            f"the list of {scan.table} is refused: its partition columns are now "
            f"{_in_words(columns, types)}, and were {_in_words(scan.columns, scan.types)}"
        )
    found = metastore.partitions_by_names(table, scan.partitions)
    return replace(scan, partitions=tuple(found))


def _in_words(columns: tuple[str, ...], types: tuple[str, ...]) -> str:
    return ", ".join(map(" ".join, zip(columns, types, strict=True)))
