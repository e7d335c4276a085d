"""The layout of an Iceberg table that Spark has loaded.

It is read as JSON in one call each, because every method of the JVM's objects is a call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from airflow_hive_opt.metastores.iceberg.layout import Field, Layout, layout


def layout_of(jvm: Any, iceberg: Any) -> Layout:
    """The layout of Iceberg's table, an object of the JVM."""
    parsers = jvm.org.apache.iceberg
    schema = json.loads(parsers.SchemaParser.toJson(iceberg.schema()))
    own = iceberg.spec()
    spec = _fields(parsers.PartitionSpecParser.toJson(own))
    specs = [spec]
    if iceberg.specs().size() > 1:
        every = iceberg.specs().values()
        specs = [_fields(parsers.PartitionSpecParser.toJson(each)) for each in every]
    order = _fields(parsers.SortOrderParser.toJson(iceberg.sortOrder()))
    return layout(schema["fields"], specs, spec, order)


def _fields(text: str) -> Sequence[Field]:
    found: Sequence[Field] = json.loads(text).get("fields", ())
    return found
