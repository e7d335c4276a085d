"""The data files of one snapshot of a table, with the values of their partitions.

Spark reads all manifests of the snapshot for them, or Delta's log. That takes about as long as a
key query, and needs no keys, so both can run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.spark.catalog.lakes.delta_files import file_partitions
from airflow_hive_opt.spark.local_task.partition_values import PartitionField
from airflow_hive_opt.spark.session.threads import in_session
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote_table
from airflow_hive_opt.statement.lake_formats import DELTA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Values = tuple[Optional[str], ...]
"""The values of one partition as text, in the order of the fields."""


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
        name, snapshot = self._table.name, self._snapshot
        if self._table.provider == DELTA:
            columns = [field.column.name for field in self._fields]
            return file_partitions(self._session, name, snapshot, self._table_id, columns)
        selected = ["file_path", *(field.as_text for field in self._fields)]
        rows = self._session.sql(
            f"SELECT {', '.join(selected)} FROM {quote_table(name)}.files "
            f"VERSION AS OF {int(snapshot)} WHERE content = 0"
        )
        return {row[0]: tuple(row[1:]) for row in rows.collect()}
