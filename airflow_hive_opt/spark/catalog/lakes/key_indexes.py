"""Which columns of a table have a key index, in the folder of the key indexes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.key_index.manifest import field_ids_in
from airflow_hive_opt.spark.catalog.lakes.formats import indexed_format
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.lake_formats import is_indexable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)


def index_folder(
    session: SparkSession, uri: str, open_path: Callable[[str], StoragePath]
) -> StoragePath | None:
    """The folder of the key indexes; ``None``, with a line in the log, if it can't be used.

    ``uri`` is empty without indexes.
    """
    if not uri:
        return None
    if is_remote(session):
        log.info("key indexes are not used over Spark Connect")
    elif find_spec("pyarrow") is None:
        log.warning("key indexes are not used: install PyArrow where Spark's driver runs")
    else:
        try:
            folder = open_path(uri)
            if folder.exists():
                return folder
            log.warning("key indexes are not used: Spark's driver finds no index_path %s", uri)
        except Exception as error:  # noqa: BLE001 - drivers raise errors of their own
            log.warning("key indexes are not used: index_path %s: %s", uri, in_words(error))
    return None


def with_indexes(session: SparkSession, table: Table, loaded: Any, folder: StoragePath) -> Table:
    """``table`` with the columns for which ``folder`` has an index; ``loaded`` is the JVM's."""
    if not is_indexable(table.provider):
        return table
    try:
        identity = indexed_format(table.provider).identity(session, loaded)
        indexed = field_ids_in(folder, identity.uuid)
    except Exception as error:  # noqa: BLE001 - drivers raise errors of their own
        log.warning("the key indexes of %s can't be listed: %s", table.name, in_words(error))
        return table
    names = (name for name, at in identity.columns.items() if at in indexed)
    return replace(table, indexed=tuple(names))
