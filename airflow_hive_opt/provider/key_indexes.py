"""Where key indexes are, and the tables of which one can be built."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from airflow_hive_opt.hooks.hive_metastore import DEFAULT_CONN_ID, HiveMetastoreHook
from airflow_hive_opt.hooks.iceberg_catalog import IcebergCatalogHook
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
    conf,
)
from airflow_hive_opt.provider.worker import opener
from airflow_hive_opt.statement.lake_formats import DELTA

if TYPE_CHECKING:
    from types import ModuleType

    from airflow_hive_opt.key_index.indexed_column import IndexedColumn


def index_path() -> str:
    """The folder of all key indexes; empty if there is none."""
    return str(conf.get("hive_opt", "index_path", fallback="") or "").strip()


def index_folder() -> ObjectStoragePath:
    """The folder in which a task builds an index; raises ``AirflowFailException``."""
    path = index_path()
    if not path:
        raise AirflowFailException("there is no folder for key indexes: set [hive_opt] index_path")
    try:
        folder = ObjectStoragePath(path.rstrip("/"))
        folder.fs  # noqa: B018 - before Airflow 3.1, only this fails for an unknown scheme
    except (ValueError, ImportError) as error:
        raise AirflowFailException(
            f"[hive_opt] index_path {path!r} can't be used: {error}"
        ) from None
    return folder


def column_to_index(
    table: str,
    column: str,
    catalog_conn_id: str | None,
    metastore_conn_id: str | None,
    storage_conn_id: str | None,
) -> IndexedColumn:
    """A column of an Iceberg or Delta table, at the table's current snapshot.

    ``table`` is its name: that on Spark for a table of a catalog, with the catalog's name, and
    ``database.table`` for one of a metastore. Or it is the folder of a Delta table, or of a table
    of a Hadoop catalog of Iceberg's. Raises ``AirflowFailException`` if there is no such connection
    or library, ``AirflowException`` if the table can't be read, or not at this time, and
    :class:`~airflow_hive_opt.key_index.indexed_column.IndexingError`.
    """
    from airflow_hive_opt.key_index.delta_log import folder_in
    from airflow_hive_opt.metastores.lakes import CatalogError
    from airflow_hive_opt.metastores.metastore import MetastoreError
    from airflow_hive_opt.worker.unanswered import Unanswered

    open_path = opener(storage_conn_id)
    folder = folder_in(table)
    try:
        if folder and catalog_conn_id is None and _has_delta_log(open_path(folder)):
            return _of_delta(table, column, open_path(folder))
        if folder:
            iceberg = _iceberg()
            loaded = iceberg.in_folder(table, folder, open_path).loaded
        elif catalog_conn_id is not None:
            _iceberg()
            loaded = IcebergCatalogHook(catalog_conn_id).get_conn().load(table)
            if storage_conn_id is not None:
                from airflow_hive_opt.worker.lakes.path_io import PathIO

                loaded.io = PathIO(open_path)
        else:
            with HiveMetastoreHook(metastore_conn_id or DEFAULT_CONN_ID).get_conn() as metastore:
                own_name = table.removeprefix("spark_catalog.")
                entry = metastore.table(own_name)
                if entry is not None and entry.provider == DELTA and entry.location:
                    return _of_delta(table, column, open_path(entry.location))
                iceberg = _iceberg()
                loaded = iceberg.in_metastore(table, own_name, metastore, open_path).loaded
    except (CatalogError, MetastoreError, Unanswered) as error:
        raise AirflowException(f"can't read the table {table}: {error}") from None
    from airflow_hive_opt.key_index.iceberg import IcebergColumn

    return IcebergColumn(loaded, table, column)


def _of_delta(table: str, column: str, folder: ObjectStoragePath) -> IndexedColumn:
    from airflow_hive_opt.key_index.delta import DeltaColumn
    from airflow_hive_opt.key_index.delta_log import read_log, why_unreadable

    if why := why_unreadable(table):
        raise AirflowFailException(why)
    return DeltaColumn(read_log(table, folder), table, column)


def _has_delta_log(folder: ObjectStoragePath) -> bool:
    """Whether a folder is that of a Delta table; raises ``AirflowException``."""
    from airflow_hive_opt.key_index.delta_log import is_table

    try:
        return is_table(folder)
    except Exception as error:  # noqa: BLE001 - drivers raise classes of their own
        raise AirflowException(f"can't look into {folder}: {error}") from None


def _iceberg() -> ModuleType:
    """The module that reads Iceberg tables; raises ``AirflowFailException`` without PyIceberg."""
    from airflow_hive_opt.metastores.iceberg.catalog import NO_PYICEBERG

    if find_spec("pyiceberg") is None:
        raise AirflowFailException(NO_PYICEBERG)
    from airflow_hive_opt.worker.lakes import iceberg

    return iceberg
