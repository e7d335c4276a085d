"""Which columns of a table have a key index, in the folder of the key indexes.

An index belongs to the UUID of an Iceberg table and to the field ID of a column there, so it stays
the same if either gets another name.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.lake_formats import ICEBERG

if TYPE_CHECKING:
    from collections.abc import Callable

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
    if table.provider != ICEBERG:
        return table
    try:
        numbers = _numbers_in(folder / table_uuid(loaded))
        names = field_ids(session, loaded) if numbers else {}
    except Exception as error:  # noqa: BLE001 - drivers raise errors of their own
        log.warning("the key indexes of %s can't be listed: %s", table.name, in_words(error))
        return table
    return replace(table, indexed=tuple(name for name, at in names.items() if str(at) in numbers))


def table_uuid(loaded: Any) -> str:
    """The UUID of an Iceberg table."""
    return str(loaded.table().operations().current().uuid())


def field_ids(session: SparkSession, loaded: Any) -> dict[str, int]:
    """The field ID of each column of an Iceberg table, by its name in lower case.

    Without columns whose names differ in their case only.
    """
    text = session._jvm.org.apache.iceberg.SchemaParser.toJson(loaded.table().schema())  # type: ignore[union-attr]
    fields = json.loads(str(text))["fields"]
    names = Counter(str(field["name"]).lower() for field in fields)
    numbers = {str(field["name"]).lower(): int(field["id"]) for field in fields}
    return {name: number for name, number in numbers.items() if names[name] == 1}


def _numbers_in(folder: StoragePath) -> frozenset[str]:
    try:
        return frozenset(each.name for each in folder.iterdir())
    except FileNotFoundError:
        return frozenset()
