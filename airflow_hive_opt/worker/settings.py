"""The settings of a session under which the worker would read other values than Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Explicit settings that may change names, literals, comparisons or the values of files.
_MAY_CHANGE = re.compile(
    r"spark\.sql\.(legacy\.(?!timeParserPolicy$).+|.*collation.*|defaultCatalog"
    r"|catalog\.spark_catalog(\..+)?"
    r"|(files\.ignore|parquet\.(binaryAsString|fieldId|datetimeRebase)|orc\.).*"
    r"|hive\.(convertMetastore(Parquet|Orc)|manageFilesourcePartitions)"
    r"|(charAsVarchar|variable\.substitute)|functionResolution\..+|path\..+|defaultPath)"
    r"|(spark\.hadoop\.)?(textinputformat\.record\.delimiter|orc\..+)"
)
SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
# Of these, the values that change nothing. The catalogs are the session's own with one more format.
_HARMLESS = {
    SESSION_CATALOG: (
        "org.apache.iceberg.spark.sparksessioncatalog",
        "org.apache.spark.sql.delta.catalog.deltacatalog",
    ),
    f"{SESSION_CATALOG}.type": ("hive",),
    "spark.sql.files.ignoreCorruptFiles": ("false",),
    "spark.sql.files.ignoreMissingFiles": ("false",),
    "spark.sql.parquet.binaryAsString": ("false",),
    "spark.sql.parquet.fieldId.read.enabled": ("false",),
    "spark.sql.defaultCatalog": ("spark_catalog",),
    "spark.sql.variable.substitute": ("true",),
    "spark.sql.hive.convertMetastoreParquet": ("true",),
    "spark.sql.hive.convertMetastoreOrc": ("true",),
    "spark.sql.hive.manageFilesourcePartitions": ("true",),
}


def setting_that_changes_values(settings: Mapping[str, str]) -> str | None:
    """The first of the session's known settings that may change values; ``None`` if none does.

    >>> setting_that_changes_values({"spark.sql.ansi.enabled": "false"})
    >>> setting_that_changes_values({"spark.sql.parquet.binaryAsString": "true"})
    'spark.sql.parquet.binaryAsString'
    """
    return next(
        (
            name
            for name, value in sorted(settings.items())
            if _MAY_CHANGE.fullmatch(name) and value.lower() not in _HARMLESS.get(name, ())
        ),
        None,
    )


def other_catalogs(settings: Mapping[str, str]) -> frozenset[str]:
    """The names of the session's catalogs besides its own, as far as they are known.

    >>> sorted(other_catalogs({"spark.sql.catalog.lake": "a.B", "spark.sql.catalog.lake.uri": "u"}))
    ['lake']
    """
    names = (name.removeprefix("spark.sql.catalog.") for name in settings)
    return frozenset(
        name for name in names if "." not in name and f"spark.sql.catalog.{name}" in settings
    )
