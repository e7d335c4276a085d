"""Catalog entries of Delta and Hudi tables without Delta or Hudi, for tests only.

The runtimes are not installed, so Spark can't read such a table. Its catalog accepts an entry with
any provider, which is all that the planner reads.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

# The positions of two fields of Spark's CatalogTable.
_IDENTIFIER, _PROVIDER = 0, 4


def add_entry(session: SparkSession, like: str, name: str, provider: str) -> None:
    """Adds ``database.table`` with the columns and statistics of ``like``, of another provider."""
    external: Any = session._jsparkSession.sharedState().externalCatalog()
    jvm: Any = session._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    metadata = external.getTable(*like.split("."))
    database, short = name.split(".")
    fields = [metadata.productElement(at) for at in range(metadata.productArity())]
    fields[_IDENTIFIER] = catalyst.TableIdentifier(short, jvm.scala.Some(database))
    fields[_PROVIDER] = jvm.scala.Some(provider)
    external.createTable(catalyst.catalog.CatalogTable(*fields), False)
    external.alterTableStats(database, short, metadata.stats())
