"""Which columns of a table have a key index, in the folder of the key indexes.

An index belongs to the UUID of an Iceberg table and to the field ID of a column there. Of a Delta
table it belongs to the table's ID and to a column's name in the data files. So it stays the same if
the table or the column gets another name.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.key_index.manifest import field_ids_in
from airflow_hive_opt.spark.catalog.lakes.delta_files import names_in_files
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.lake_formats import DELTA, ICEBERG, is_indexable

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


@dataclass(frozen=True)
class Identity:
    """What an index knows a table and its columns by.

    ``columns`` has each column's name in lower case with its ID, without columns whose names differ
    in their case only.
    """

    uuid: str
    columns: Mapping[str, str]


def with_indexes(session: SparkSession, table: Table, loaded: Any, folder: StoragePath) -> Table:
    """``table`` with the columns for which ``folder`` has an index; ``loaded`` is the JVM's."""
    if not is_indexable(table.provider):
        return table
    try:
        identity = identity_of(session, table, loaded)
        indexed = field_ids_in(folder, identity.uuid)
    except Exception as error:  # noqa: BLE001 - drivers raise errors of their own
        log.warning("the key indexes of %s can't be listed: %s", table.name, in_words(error))
        return table
    names = (name for name, at in identity.columns.items() if at in indexed)
    return replace(table, indexed=tuple(names))


def identity_of(session: SparkSession, table: Table, loaded: Any) -> Identity:
    """The table's identity; ``loaded`` is the JVM's. Raises Spark's errors."""
    return _IDENTITIES[table.provider](session, loaded)


def _of_iceberg(session: SparkSession, loaded: Any) -> Identity:
    """The UUID of the table, and the field IDs."""
    table = loaded.table()
    text = session._jvm.org.apache.iceberg.SchemaParser.toJson(table.schema())  # type: ignore[union-attr]
    fields = json.loads(str(text))["fields"]
    uuid = str(table.operations().current().uuid())
    return Identity(uuid, _once((str(each["name"]), str(each["id"])) for each in fields))


def _of_delta(session: SparkSession, loaded: Any) -> Identity:  # noqa: ARG001
    """The table's ID, and the names of the columns in the data files."""
    metadata = loaded.initialSnapshot().metadata()
    return Identity(str(metadata.id()), _once(names_in_files(metadata).items()))


_IDENTITIES: Mapping[str, Callable[[SparkSession, Any], Identity]] = {
    ICEBERG: _of_iceberg,
    DELTA: _of_delta,
}


def _once(columns: Iterable[tuple[str, str]]) -> dict[str, str]:
    pairs = list(columns)
    names = Counter(name.lower() for name, _ in pairs)
    return {name.lower(): at for name, at in pairs if names[name.lower()] == 1}
