"""The sizes of partitions, for a gate that limits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.descriptor import Target
from airflow_hive_opt.metastores.metastore import Remote
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath


def with_bytes(
    metastore: Remote, open_path: Callable[[str], StoragePath], target: Target
) -> Target:
    """The target with every partition's size in bytes: the metastore's, else its files'.

    Raises ``MetastoreError``, and :class:`~airflow_hive_opt.worker.unanswered.Unanswered` if files
    can't be listed.
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
    return replace(partition, bytes=bytes_below(open_path(partition.location)))


def bytes_below(folder: StoragePath) -> int:
    """The size of all files below a folder; 0 if it does not exist.

    Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered` if it can't be listed.
    """
    file_system: Any = folder.fs
    try:
        return int(file_system.du(folder.path)) if file_system.exists(folder.path) else 0
    except Exception as error:  # drivers raise classes of their own
        raise Unanswered(f"can't list {folder}: {error}") from error
