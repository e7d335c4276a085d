"""The sizes of tables, which choose the small ones, and of partitions, for a gate on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.descriptor import Target
from airflow_hive_opt.metastores.metastore import Remote
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.worker.files.folder import data_files
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath


def bytes_of_files(storage: Storage, open_path: Callable[[str], StoragePath]) -> int | None:
    """The bytes of a table's files, as Spark measures them; ``None`` if they can't be listed."""
    try:
        return sum(file.size for file in data_files(open_path(storage.location)))
    except Unanswered:
        return None


def with_bytes(
    metastore: Remote, open_path: Callable[[str], StoragePath], target: Target
) -> Target:
    """The target with every partition's size in bytes: the metastore's, else its files'.

    Raises ``MetastoreError``, and ``OSError`` if files can't be listed.
    """
    table = metastore.table(target.scan.table)
    bare = [part for part in target.partitions if part.bytes is None and part.location is None]
    found = metastore.partitions_by_names(table, bare) if table is not None and bare else []
    known = {part.values: part for part in found}
    partitions = (known.get(part.values, part) for part in target.partitions)
    return replace(target, partitions=tuple(_measured(part, open_path) for part in partitions))


def _measured(partition: Partition, open_path: Callable[[str], StoragePath]) -> Partition:
    """The partition with its files' size; unchanged if it has a size or no location."""
    if partition.bytes is not None or partition.location is None:
        return partition
    folder = open_path(partition.location)
    size = folder.fs.du(folder.path) if folder.exists() else 0
    return replace(partition, bytes=int(size))
