"""The data files of one snapshot of a table, with their sizes and the values of their partitions.

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
from airflow_hive_opt.spark.catalog.lakes.indexed_format import DataFile, PartitionField
from airflow_hive_opt.spark.local_task.fixed_snapshots import FixedSnapshot
from airflow_hive_opt.spark.session.threads import in_session
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.scan_ref import ScanRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DataFiles:
    """The data files of ``table`` at a snapshot; ``fields`` are those of its partitions."""

    def __init__(
        self,
        session: SparkSession,
        table: Table,
        fields: Sequence[PartitionField],
        fixed: FixedSnapshot,
    ) -> None:
        self._session = session
        self._table = table
        self._fields = fields
        self._fixed = fixed
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

    def numbers_of(self, scan: ScanRef, kept: Collection[DataFile]) -> Optional[PlannedFiles]:
        """The numbers of the files that a scan keeps, as the format itself counts them.

        ``None`` if they may differ from its numbers: the snapshot has delete files too, or the
        partitions have other fields. An empty text and NULL are one partition here, although
        Delta's log can have both.
        """
        total = sum(each.bytes for each in self.by_path.values())
        if total != self._fixed.total_bytes or not self._fixed.whole_partitions:
            return None
        partitions = len({each.values for each in kept})
        kept_bytes = sum(each.bytes for each in kept)
        numbers = partitions, len(kept), kept_bytes, len(self.by_path), total
        return PlannedFiles(scan, None, *numbers)

    def _read(self) -> dict[str, DataFile]:
        format_ = indexed_format(self._table.provider)
        return format_.data_files(
            self._session, self._table, self._fixed.snapshot, self._fixed.table_id, self._fields
        )
