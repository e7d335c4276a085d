"""``KeyIndexOperator``: builds the index of a table's key column, or brings it up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    BaseOperator,
)
from airflow_hive_opt.provider.key_indexes import column_to_index, index_folder
from airflow_hive_opt.provider.without_stack import without_stack

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

_TEXTS = ("table", "column", "catalog_conn_id", "metastore_conn_id", "storage_conn_id")


class KeyIndexOperator(BaseOperator):
    """Indexes a column of an Iceberg or Delta table: which data files hold a key.

    Later statements with keys of this column read only the partitions of these files, also if the
    table is partitioned by other columns. The operator reads the column in the data files that the
    index does not cover yet, in the worker and without Spark. It writes nothing into the table. The
    index is in the folder ``[hive_opt] index_path``, where all statements look for it.
    Statements read data files that the index does not cover, so an index may be old.

    The output has ``new_files`` and ``new_keys``, which this run has read, and ``left_out``, the
    data files that can't be covered, by reason. ``files``, ``keys``, ``parts``, ``bytes`` and
    ``bytes_per_key`` are those of the whole index, ``seconds`` is the time of the run. A key counts
    once for each data file that holds it.

    :param table: the table's name as on Spark: ``catalog.database.table`` of an Iceberg catalog, or
        ``database.table`` in a metastore. Or the folder or URI of a Delta table, also written as on
        Spark (``delta.`s3://lake/orders```), or of a table of Iceberg's Hadoop catalog. A folder
        with a ``_delta_log`` is a Delta table. (templated)
    :param column: the column: a whole number, string or date. (templated)
    :param catalog_conn_id: the ``iceberg`` connection of the table's catalog, for Iceberg tables
        alone. Default: none; then the table is in a metastore or a folder. (templated)
    :param metastore_conn_id: the ``hive_metastore`` connection of the table's metastore, or an
        ``aws`` connection for AWS Glue. Default: ``metastore_default``. (templated)
    :param storage_conn_id: the connection to the storage of the table's files. Default: none; then
        the catalog gives the credentials, or the machine. (templated)
    :param rebuild: read all data files again, also those that the index covers. (templated)
    """

    template_fields: Sequence[str] = (*_TEXTS, "rebuild")
    ui_color = "#e8eef7"

    def __init__(
        self,
        *,
        table: str,
        column: str,
        catalog_conn_id: str | None = None,
        metastore_conn_id: str | None = None,
        storage_conn_id: str | None = None,
        rebuild: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.column = column
        self.catalog_conn_id = catalog_conn_id
        self.metastore_conn_id = metastore_conn_id
        self.storage_conn_id = storage_conn_id
        self.rebuild = rebuild

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Builds the index and returns the summary for XCom."""
        self._check()
        folder = index_folder()
        # late: they load much
        from airflow_hive_opt.documents.storage import DescriptorError
        from airflow_hive_opt.key_index.building import build
        from airflow_hive_opt.key_index.indexed_column import IndexingError, NotIndexable

        of = self.catalog_conn_id, self.metastore_conn_id, self.storage_conn_id
        try:
            column = column_to_index(self.table, self.column, *of)
            built = build(folder, column, str(self.rebuild).lower() == "true")
        except NotIndexable as error:
            raise without_stack(AirflowFailException(str(error))) from None
        except (IndexingError, DescriptorError) as error:
            raise without_stack(AirflowException(str(error))) from None
        if column.why_unused:
            self.log.warning("%s", column.why_unused)
        self.log.info("%s", built.headline(self.table, self.column))
        return built.summary()

    def _check(self) -> None:
        """Raises ``AirflowFailException`` for arguments that are not valid after rendering."""
        for name in _TEXTS:
            value = getattr(self, name)
            if value is None and name.endswith("_conn_id"):
                continue
            if not isinstance(value, str) or not value.strip():
                raise AirflowFailException(
                    f"{name} must be a text once it is rendered, not {value!r}"
                )
        if str(self.rebuild).lower() not in ("true", "false"):
            raise AirflowFailException(f"rebuild must be true or false, not {self.rebuild!r}")
