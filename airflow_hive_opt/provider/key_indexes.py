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

if TYPE_CHECKING:
    from pyiceberg.table import Table


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


def iceberg_table(
    table: str,
    catalog_conn_id: str | None,
    metastore_conn_id: str | None,
    storage_conn_id: str | None,
) -> Table:
    """An Iceberg table at its current snapshot.

    ``table`` is its name: that on Spark for a table of a catalog, with the catalog's name, and
    ``database.table`` for one of a metastore. Or it is the folder of a table of a Hadoop catalog.
    Raises ``AirflowFailException`` if there is no such connection, and ``AirflowException`` if the
    table can't be read, or not at this time.
    """
    from airflow_hive_opt.metastores.iceberg.catalog import NO_PYICEBERG
    from airflow_hive_opt.metastores.lakes import CatalogError
    from airflow_hive_opt.metastores.metastore import MetastoreError
    from airflow_hive_opt.worker.unanswered import Unanswered

    if find_spec("pyiceberg") is None:
        raise AirflowFailException(NO_PYICEBERG)
    from airflow_hive_opt.worker.lakes import iceberg
    from airflow_hive_opt.worker.lakes.path_io import PathIO

    open_path = opener(storage_conn_id)
    try:
        if "/" in table:
            return iceberg.in_folder(table, table.rstrip("/"), open_path).loaded
        if catalog_conn_id is not None:
            loaded = IcebergCatalogHook(catalog_conn_id).get_conn().load(table)
            if storage_conn_id is not None:
                loaded.io = PathIO(open_path)
            return loaded
        with HiveMetastoreHook(metastore_conn_id or DEFAULT_CONN_ID).get_conn() as metastore:
            own_name = table.removeprefix("spark_catalog.")
            return iceberg.in_metastore(table, own_name, metastore, open_path).loaded
    except (CatalogError, MetastoreError, Unanswered) as error:
        raise AirflowException(f"can't read the table {table}: {error}") from None
