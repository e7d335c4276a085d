"""The layout of an Iceberg table that Spark has loaded.

It is read as JSON in one call each, because every method of the JVM's objects is a call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from airflow_hive_opt.metastores.iceberg.layout import Field, Layout, layout
from airflow_hive_opt.spark.session.java_classes import java_class
from airflow_hive_opt.statement.errors import PlanError


def layout_of(jvm: Any, iceberg: Any) -> Layout:
    """The layout of Iceberg's table, an object of the JVM.

    Raises ``PlanError`` if conditions on the table may lose rows.
    """
    schema = json.loads(_iceberg(jvm, "SchemaParser").toJson(iceberg.schema()))
    if any("initial-default" in each for each in schema["fields"]):
        check_defaults(str(_iceberg(jvm, "IcebergBuild").version()), str(iceberg.name()))
    own = iceberg.spec()
    parser = _iceberg(jvm, "PartitionSpecParser")
    spec = _fields(parser.toJson(own))
    specs = [spec]
    if iceberg.specs().size() > 1:
        every = iceberg.specs().values()
        specs = [_fields(parser.toJson(each)) for each in every]
    order = _fields(_iceberg(jvm, "SortOrderParser").toJson(iceberg.sortOrder()))
    return layout(schema["fields"], specs, spec, order)


def check_defaults(version: str, table: str) -> None:
    """Raises ``PlanError`` for an Iceberg that ignores column defaults when it skips files.

    It skips files without the column, although their rows have its default.

    >>> check_defaults("1.12.0", "lake.shop.orders")
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < (1, 12):
        raise PlanError(
            "INPUT",
            f"{table} has columns with default values, and Iceberg {version} loses rows of such "
            "tables by conditions",
        )


def _iceberg(jvm: Any, name: str) -> Any:
    return java_class(jvm, f"org.apache.iceberg.{name}")


def _fields(text: str) -> Sequence[Field]:
    found: Sequence[Field] = json.loads(text).get("fields", ())
    return found
