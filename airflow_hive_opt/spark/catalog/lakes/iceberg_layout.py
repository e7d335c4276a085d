"""How an Iceberg table groups its rows into files: partition specs and sort order.

They are read as JSON in one call each, because every method of the JVM's objects is a call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_hive_opt.statement.errors import PlanError

_Field = Mapping[str, Any]


@dataclass(frozen=True)
class Layout:
    """The fields of :class:`~airflow_hive_opt.statement.catalog.Table` with the same names."""

    clustered_by: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    partition_fields: tuple[tuple[str, str], ...]


def layout_of(jvm: Any, iceberg: Any) -> Layout:
    """The layout of Iceberg's table, an object of the JVM.

    Raises ``PlanError`` if conditions on the table may lose rows.
    """
    parsers = jvm.org.apache.iceberg
    schema = json.loads(parsers.SchemaParser.toJson(iceberg.schema()))
    if any("initial-default" in each for each in schema["fields"]):
        _check_defaults(str(parsers.IcebergBuild.version()), str(iceberg.name()))
    own = iceberg.spec()
    spec = _fields(parsers.PartitionSpecParser.toJson(own))
    specs = [spec]
    if iceberg.specs().size() > 1:
        every = iceberg.specs().values()
        specs = [_fields(parsers.PartitionSpecParser.toJson(each)) for each in every]
    order = _fields(parsers.SortOrderParser.toJson(iceberg.sortOrder()))
    return layout(schema["fields"], specs, spec, order)


def _check_defaults(version: str, table: str) -> None:
    """Raises ``PlanError`` for a version that skips files without a column that has a default.

    A condition is then not true for their rows, although the column has the default there.

    >>> _check_defaults("1.12.0", "lake.shop.orders")
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < (1, 12):
        raise PlanError(
            "INPUT",
            f"{table} has columns with default values, and Iceberg {version} loses rows of such "
            "tables by conditions",
        )


def layout(
    columns: Sequence[_Field],
    specs: Sequence[Sequence[_Field]],
    spec: Sequence[_Field],
    order: Sequence[_Field],
) -> Layout:
    """The layout of a table with the current ``spec`` and all ``specs`` that it has had.

    >>> columns = [{"id": 1, "name": "Id"}, {"id": 2, "name": "day"}]
    >>> by_day = {"source-id": 2, "field-id": 1000, "name": "day", "transform": "identity"}
    >>> by_id = {"source-id": 1, "transform": "identity"}
    >>> layout(columns, [[by_day]], [by_day], [by_id])
    Layout(clustered_by=('day', 'id'), partitioned_by=('day',), partition_fields=(('day', 'day'),))
    >>> layout(columns, [[], [by_day]], [by_day], []).partition_fields
    ()
    """
    # a nested column is not among these, and a name with a dot can't be told from one
    names = {each["id"]: each["name"].lower() for each in columns if "." not in each["name"]}
    partitioned_by = dict.fromkeys(_sources(spec, names))
    return Layout(
        tuple(dict.fromkeys((*partitioned_by, *_sources(order, names)))),
        tuple(partitioned_by),
        tuple(
            (names[each["source-id"]], each["name"])
            for each in spec
            if each.get("source-id") in names and all(_has_values(one, each) for one in specs)
        ),
    )


def _fields(text: str) -> Sequence[_Field]:
    found: Sequence[_Field] = json.loads(text).get("fields", ())
    return found


def _sources(fields: Sequence[_Field], names: Mapping[int, str]) -> Iterator[str]:
    for field in fields:
        name = names.get(field.get("source-id", -1))
        if name is not None and field["transform"] != "void":
            yield name


def _has_values(spec: Sequence[_Field], field: _Field) -> bool:
    """Whether a spec has the field, with the column's own values."""
    return any(
        each.get("field-id") == field.get("field-id")
        and each.get("source-id") == field.get("source-id")
        and each["transform"] == "identity"
        for each in spec
    )
