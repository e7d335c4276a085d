"""The protocol of a session's catalog, and the choice of its class."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Protocol

from airflow_hive_opt.documents.descriptor import Target
from airflow_hive_opt.metastores.metastore import Metastore
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.spark.catalog.connect_catalog import ConnectCatalog
from airflow_hive_opt.spark.catalog.definitions import Definitions
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.statement.catalog import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath


class SessionCatalog(Metastore, Protocol):
    """The tables of a session, in its JVM or over Spark Connect; use one for one run.

    An instance looks up each table once, and lists the names of its partitions once.
    """

    @property
    def is_on_glue(self) -> bool:
        """Whether Spark's metastore is AWS Glue."""

    def look_up_together(self, sql: str) -> None:
        """Looks up the tables that a statement reads in few calls, if the metastore can."""

    def described(self, table: Table, columns: Container[str]) -> Table:
        """A table that this instance has looked up, with its buckets and statistics, if any."""

    def definitions(self) -> Definitions:
        """What the names of views, functions and variables stand for."""

    def location(self, name: str) -> str | None:
        """A table's location; ``None`` for a view and for a name that does not exist."""

    def default_location(self) -> str | None:
        """The location of the metastore's database ``default``."""

    def partitions_by_filter(
        self, table: Table, alias: str, condition: str, parameters: Mapping[str, object]
    ) -> list[Partition]:
        """The partitions for which ``condition``, on ``alias``'s partition columns, is true."""

    def with_bytes(self, target: Target) -> Target:
        """The target with every partition's size in bytes, as far as it can be known."""

    def storage(self, table: Table) -> tuple[str, str]:
        """Format (``parquet`` or ``orc``) and location; empty if Spark's own reader is not used."""


def catalog_of(session: SparkSession, indexes: StoragePath | None = None) -> SessionCatalog:
    """The session's catalog, through its JVM or over Spark Connect; use it for one run.

    ``indexes`` is the folder of the key indexes, which are not used over Spark Connect.
    """
    return ConnectCatalog(session) if is_remote(session) else SparkCatalog(session, indexes)
