"""How an Iceberg table groups its rows into files: partition specs and sort order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Field = Mapping[str, Any]
_TIMES = ("year", "month", "day", "hour")


@dataclass(frozen=True)
class Layout:
    """The fields of :class:`~airflow_hive_opt.statement.catalog.Table` with the same names."""

    clustered_by: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    partition_fields: tuple[tuple[str, str], ...]
    partition_times: tuple[tuple[str, str, str], ...] = ()


def layout(
    columns: Sequence[Field],
    specs: Sequence[Sequence[Field]],
    spec: Sequence[Field],
    order: Sequence[Field],
) -> Layout:
    """The layout of a table with the current ``spec`` and all ``specs`` that it has had.

    >>> columns = [{"id": 1, "name": "Id"}, {"id": 2, "name": "day"}]
    >>> by_day = {"source-id": 2, "field-id": 1000, "name": "day", "transform": "identity"}
    >>> by_id = {"source-id": 1, "transform": "identity"}
    >>> layout(columns, [[by_day]], [by_day], [by_id])
    Layout(clustered_by=('day', 'id'), partitioned_by=('day',), \
partition_fields=(('day', 'day'),), partition_times=())
    >>> layout(columns, [[], [by_day]], [by_day], []).partition_fields
    ()
    >>> by_month = {**by_day, "name": "day_month", "transform": "month"}
    >>> layout(columns, [[by_month]], [by_month], []).partition_times
    (('day', 'day_month', 'month'),)
    """
    # a nested column is not among these, and a name with a dot can't be told from one
    names = {each["id"]: each["name"].lower() for each in columns if "." not in each["name"]}
    partitioned_by = dict.fromkeys(_sources(spec, names))
    lasting = [
        each
        for each in spec
        if each.get("source-id") in names and all(_has(one, each) for one in specs)
    ]
    return Layout(
        tuple(dict.fromkeys((*partitioned_by, *_sources(order, names)))),
        tuple(partitioned_by),
        tuple(
            (names[each["source-id"]], each["name"])
            for each in lasting
            if each["transform"] == "identity"
        ),
        tuple(
            (names[each["source-id"]], each["name"], each["transform"])
            for each in lasting
            if each["transform"] in _TIMES
        ),
    )


def _sources(fields: Sequence[Field], names: Mapping[int, str]) -> Iterator[str]:
    for field in fields:
        name = names.get(field.get("source-id", -1))
        if name is not None and field["transform"] != "void":
            yield name


def _has(spec: Sequence[Field], field: Field) -> bool:
    """Whether a spec has the field, with the same values of the same column."""
    return any(
        each.get("field-id") == field.get("field-id")
        and each.get("source-id") == field.get("source-id")
        and each["transform"] == field["transform"]
        for each in spec
    )
