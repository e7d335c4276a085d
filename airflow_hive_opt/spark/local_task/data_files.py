"""The data files of one snapshot of a table, with the values of their partitions.

Spark reads all manifests of the snapshot for them, or Delta's log. That takes about as long as a
key query, and needs no keys, so both can run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.spark.catalog.lakes.formats import indexed_format
from airflow_hive_opt.spark.catalog.lakes.indexed_format import PartitionField, Values
from airflow_hive_opt.spark.session.threads import in_session
from airflow_hive_opt.statement.catalog import Table

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
        self._begun: Optional[Future[dict[str, Values]]] = None

    def begin(self) -> None:
        """Begins to read them in another thread; :attr:`partitions` raises its error."""
        thread = ThreadPoolExecutor(1, "data-files")
        self._begun = thread.submit(in_session(self._session, self._read))
        thread.shutdown(wait=False)

    @cached_property
    def partitions(self) -> dict[str, Values]:
        """The values of the file's partition, by the file's path; raises Spark's errors."""
        return self._read() if self._begun is None else self._begun.result()

    def _read(self) -> dict[str, Values]:
        format_ = indexed_format(self._table.provider)
        return format_.file_partitions(
            self._session, self._table, self._snapshot, self._table_id, self._fields
        )
