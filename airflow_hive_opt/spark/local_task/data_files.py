"""The data files of one snapshot of a table, with the values of their partitions.

Spark reads all manifests of the snapshot for them, or Delta's log. That takes about as long as a
key query, and needs no keys, so both can run at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.descriptor import PlannedFiles
from airflow_hive_opt.spark.catalog.lakes.formats import indexed_format
from airflow_hive_opt.spark.catalog.lakes.indexed_format import (
    OWN_VALUES,
    DataFile,
    PartitionField,
)
from airflow_hive_opt.spark.session.threads import in_session
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.scan_ref import ScanRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DataFiles:
    """The data files of ``table`` at ``snapshot``; ``fields`` are those of its partitions.

    ``table_id`` is as in :class:`~airflow_hive_opt.documents.descriptor.Snapshot`.
    """

    def __init__(
        self,
        session: SparkSession,
        table: Table,
        fields: Sequence[PartitionField],
        snapshot: str,
        table_id: str = "",
    ) -> None:
        self._session = session
        self._table = table
        self._fields = fields
        self._snapshot = snapshot
        self._table_id = table_id
        self._begun: Optional[Future[dict[str, DataFile]]] = None

    def begin(self) -> None:
        """Begins to read them in another thread; :attr:`by_path` raises its error."""
        thread = ThreadPoolExecutor(1, "data-files")
        self._begun = thread.submit(in_session(self._session, self._read))
        thread.shutdown(wait=False)

    @cached_property
    def by_path(self) -> dict[str, DataFile]:
        """The files by their paths; raises Spark's errors."""
        return self._read() if self._begun is None else self._begun.result()

    def counted(self, scan: ScanRef, kept: Collection[DataFile]) -> Optional[PlannedFiles]:
        """The numbers of the files that a scan keeps, as the format itself counts them.

        ``None`` if they may differ from its numbers: the table has files of deleted rows too, or
        its partitions have values of other fields.
        """
        total = sum(each.bytes for each in self.by_path.values())
        own = {field.column.name for field in self._fields if field.transform == OWN_VALUES}
        if total != self._table.total_bytes or own != set(self._table.partitioned_by):
            return None
        partitions = len({each.values for each in kept})
        kept_bytes = sum(each.bytes for each in kept)
        sizes = partitions, len(kept), kept_bytes, len(self.by_path), total
        return PlannedFiles(scan, None, *sizes)

    def _read(self) -> dict[str, DataFile]:
        format_ = indexed_format(self._table.provider)
        return format_.data_files(
            self._session, self._table, self._snapshot, self._table_id, self._fields
        )
