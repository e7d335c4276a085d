"""Hudi: no test has run against its tables, so only their partition columns count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.descriptor import PlannedFiles, RowFilter
from airflow_hive_opt.spark.catalog.lakes.entries import identity_columns, listing_its_files
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.catalog.table_facts import provider_of
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.lake_formats import HUDI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Hudi:
    """See :class:`~airflow_hive_opt.spark.catalog.lakes.lake_format.LakeFormat`."""

    name = HUDI
    reads_paths = False

    def is_entry(self, metadata: Any) -> bool:
        """By the provider."""
        return provider_of(metadata) == HUDI

    def is_loaded(self, session: SparkSession, loaded: Any) -> bool:  # noqa: ARG002
        """By the class of Spark's table."""
        name = str(loaded.getClass().getName())
        return name == "org.apache.spark.sql.hudi.catalog.HoodieInternalV2Table"

    def described(self, session: SparkSession, place: Place, table: Table, loaded: Any) -> Table:  # noqa: ARG002
        """The partition columns are those that Hudi's catalog gives."""
        return replace(table, provider=HUDI, clustered_by=identity_columns(loaded))

    def of_entry(self, session: SparkSession, table: Table) -> Table:
        """By the metastore's entry."""
        return listing_its_files(session, table, HUDI)

    def most_values(self, table: Table, column: str) -> int:  # noqa: ARG002
        """As for Iceberg."""
        return 200

    def expression(
        self,
        table: Table,  # noqa: ARG002
        filters: Sequence[tuple[str, RowFilter]],  # noqa: ARG002
    ) -> str | None:
        """Its files are not counted."""
        return None

    def counted(
        self,
        session: SparkSession,  # noqa: ARG002
        loaded: Any,  # noqa: ARG002
        found: PlannedFiles,  # noqa: ARG002
    ) -> PlannedFiles | None:
        """Its files are not counted."""
        return None

    def version(self, session: SparkSession, place: Place, loaded: Any) -> str | None:  # noqa: ARG002
        """It is not held to a version."""
        return None

    def as_of(self, version: str) -> str:
        """By the instant."""
        return f"TIMESTAMP AS OF '{version}'"

    def has_columns_of(self, session: SparkSession, loaded: Any, version: str) -> bool:  # noqa: ARG002
        """It is not held to a version."""
        return False
