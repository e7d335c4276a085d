"""Iceberg's tables over Spark Connect: what SQL tells of them.

DESCRIBE shows the current partitioning, and the table's properties the sort order and the snapshot.
The files that a condition leaves are not known before the statement runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from airflow_hive_opt.documents.descriptor import PlannedFiles
from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.spark.catalog.lakes.connect_table import ConnectTable
from airflow_hive_opt.spark.catalog.lakes.iceberg import Iceberg
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.lake_formats import ICEBERG_METADATA, WAP_BRANCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WITH_DEFAULTS = 3  # the version of the format from which on columns may have default values
_WITHOUT_FAULT = (1, 12)  # from this version on, neither defaults nor a list of texts do harm


class ConnectIceberg(Iceberg):
    """See :class:`~airflow_hive_opt.spark.catalog.lakes.lake_format.LakeFormat`."""

    def is_loaded(self, session: SparkSession, loaded: Any) -> bool:  # noqa: ARG002
        """Whether Spark names Iceberg as the table's provider."""
        return bool(loaded.provider == self.name)

    def described(
        self, session: SparkSession, place: Place, table: Table, loaded: ConnectTable
    ) -> Table:
        """The table; raises ``PlanError`` if conditions on it may lose rows."""
        if place.is_dotted:
            return table
        properties = loaded.properties
        format_version = properties.get("format-version")
        # tables of a table's metadata have none
        if format_version is None and ICEBERG_METADATA.fullmatch(place.name.lower()):
            return table
        if format_version is None or int(format_version) >= _WITH_DEFAULTS:
            # whether a column has a default value, SQL does not tell
            check_possible_defaults(_version_of_iceberg(session, place.catalog), table.name)
        columns = {column.name: column for column in table.columns if "." not in column.name}
        partitioned = tuple(_columns_in(" ".join(_kept(loaded.partitioning)), columns))
        ordered = tuple(_columns_in(properties.get("sort-order", ""), columns))
        return replace(
            table,
            total_bytes=_size(loaded),
            provider=self.name,
            clustered_by=tuple(dict.fromkeys((*partitioned, *ordered))),
            partitioned_by=partitioned,
            bounded=tuple(column.name for column in table.columns),
        )

    def counted(
        self,
        session: SparkSession,  # noqa: ARG002
        loaded: Any,  # noqa: ARG002
        found: PlannedFiles,  # noqa: ARG002
    ) -> PlannedFiles | None:
        """``None``: only Iceberg's own planning counts them, to which SQL has no access."""
        return None

    def version(self, session: SparkSession, place: Place, loaded: ConnectTable) -> str | None:
        """The ID of the current snapshot."""
        own = loaded.own_name.rpartition(".")[2]
        if own.lower() != place.name.lower() or session.conf.get(WAP_BRANCH, None):
            return None  # the name selects a branch, a tag or a snapshot
        return _snapshot(loaded)

    def state(self, loaded: Any) -> Mapping[str, str]:  # noqa: ARG002
        """Empty: SQL does not name the file of the current metadata for every catalog."""
        return {}

    def has_columns_of(self, session: SparkSession, loaded: ConnectTable, version: str) -> bool:  # noqa: ARG002
        """Whether the commit of the snapshot was the last change of the table's metadata.

        A later one may have changed the schema, which SQL does not tell.
        """
        found = loaded.first_row(
            "SELECT count(*) AS since FROM {table}.metadata_log_entries "
            f"WHERE latest_snapshot_id = {int(version)}"
        )
        return found is not None and found["since"] == 1

    def _lists_of_texts_fail(self, session: SparkSession, table: Table) -> bool:
        version = _version_of_iceberg(session, Place.of(table.name).catalog)
        return version is None or _numbers(version) < _WITHOUT_FAULT


def check_possible_defaults(version: str | None, table: str) -> None:
    """Raises ``PlanError`` for an Iceberg that ignores column defaults when it skips files.

    >>> check_possible_defaults("1.12.0", "lake.shop.orders")
    """
    if version is None or _numbers(version) < _WITHOUT_FAULT:
        who = f"Iceberg {version}" if version else "the server's Iceberg, of an unknown version,"
        raise PlanError(
            "INPUT",
            f"{table} may have columns with default values, as its format version is not below "
            f"{_WITH_DEFAULTS}, and {who} may lose rows of such tables by conditions",
        )


def _kept(partitioning: tuple[str, ...]) -> Iterator[str]:
    """The transforms without those of columns that the table is no longer partitioned by."""
    return (each for each in partitioning if not each.startswith("void("))


def _columns_in(text: str, columns: Mapping[str, object]) -> Iterator[str]:
    """The columns that a text of Spark names, in its order; names may be in backquotes.

    A column that has the name of a transform counts too: a condition on it does no harm.

    >>> list(_columns_in("days(at) bucket(4, id) ASC", {"id": 0, "at": 0, "v": 0}))
    ['at', 'id']
    """
    names = sorted((quote(name) for name in columns), key=len, reverse=True)
    pattern = "|".join(re.escape(name) for name in names) + r"|(?<![\w`.])\w+(?![\w`.])"
    found = (name.lower() for name in re.findall(pattern, text, re.IGNORECASE))
    named = {quote(name): name for name in columns} | {name: name for name in columns}
    return iter(dict.fromkeys(named[name] for name in found if name in named))


def _snapshot(loaded: ConnectTable) -> str | None:
    found = loaded.properties.get("current-snapshot-id", "none")
    return None if found == "none" else found


def _size(loaded: ConnectTable) -> int:
    snapshot = _snapshot(loaded)
    if snapshot is None:
        return 0
    found = loaded.first_row(
        "SELECT summary['total-files-size'] AS size FROM {table}.snapshots "
        f"WHERE snapshot_id = {int(snapshot)}"
    )
    return UNKNOWN_SIZE if found is None or found["size"] is None else int(found["size"])


def _version_of_iceberg(session: SparkSession, catalog: str) -> str | None:
    """The version of the server's Iceberg, ``None`` if it does not say."""
    try:
        ((found,),) = session.sql(f"SELECT {quote(catalog)}.system.iceberg_version()").collect()
    except PySparkException:
        return None
    return str(found) if _numbers(str(found)) else None


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; empty if it begins otherwise.

    >>> _numbers("1.10.1"), _numbers("unspecified")
    ((1, 10), ())
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else ()
