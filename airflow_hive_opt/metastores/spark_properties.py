"""What Spark keeps of a table in the table's properties, because Hive has no place for it.

The names of the properties are those of Spark's ``HiveExternalCatalog`` and ``CatalogTable``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.statement.catalog import Buckets, Column, ViewDefinition

HIVE = "hive"
_SOURCES = "spark.sql.sources."
_SCHEMA = f"{_SOURCES}schema"
_STATISTICS = "spark.sql.statistics."
_OF_COLUMNS = f"{_STATISTICS}colStats."
_SESSION_CATALOG = "spark_catalog"
_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def provider_of(parameters: Mapping[str, str]) -> str:
    """The table's provider in lower case: ``hive`` if Spark did not make the table."""
    return parameters.get(f"{_SOURCES}provider", HIVE).lower()


def lists_partitions(parameters: Mapping[str, str]) -> bool:
    """Whether the metastore has the partitions of a table of Spark's own."""
    return parameters.get("spark.sql.partitionProvider") == "catalog"


def columns_of(parameters: Mapping[str, str]) -> tuple[Column, ...]:
    """All columns in lower case, also those of partitions; empty if Spark keeps none.

    Raises :class:`~airflow_hive_opt.metastores.metastore.MetastoreError` if a part is missing.
    """
    text = parameters.get(_SCHEMA)
    if text is None:  # Spark splits a long one into parts
        text = "".join(_numbered(parameters, f"{_SCHEMA}.numParts", f"{_SCHEMA}.part"))
    return columns_in(text) if text else ()


def columns_in(schema: str) -> tuple[Column, ...]:
    """The columns of a schema in Spark's JSON, in lower case."""
    fields = json.loads(schema)["fields"]
    return tuple(Column(field["name"].lower(), _type_of(field)) for field in fields)


def partition_columns_of(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the partition columns in lower case; empty if Spark keeps none."""
    names = _numbered(parameters, f"{_SCHEMA}.numPartCols", f"{_SCHEMA}.partCol")
    return tuple(name.lower() for name in names)


def buckets_of(parameters: Mapping[str, str]) -> Buckets | None:
    """The buckets that Spark keeps, if any; Spark sorts only in ascending order."""
    count = parameters.get(f"{_SCHEMA}.numBuckets")
    if count is None:
        return None
    columns = _numbered(parameters, f"{_SCHEMA}.numBucketCols", f"{_SCHEMA}.bucketCol")
    sort = _numbered(parameters, f"{_SCHEMA}.numSortCols", f"{_SCHEMA}.sortCol")
    return Buckets(
        tuple(name.lower() for name in columns),
        int(count),
        tuple((name.lower(), "asc") for name in sort),
        by_spark=provider_of(parameters) != HIVE,
    )


def bytes_of(parameters: Mapping[str, str]) -> int | None:
    """The size of a table or partition by Spark's statistics, or else Hive's.

    Hive's 0 and -1 mean that it is not known: ``None``.
    """
    found = _number(parameters, f"{_STATISTICS}totalSize")
    if found is None:
        found = counted(parameters, "totalSize")
    return found if found is not None else counted(parameters, "rawDataSize")


def rows_of(parameters: Mapping[str, str]) -> int | None:
    """The number of rows by Spark's statistics, or else Hive's; ``None`` if it is not known."""
    found = _number(parameters, f"{_STATISTICS}numRows")
    return found if found is not None else counted(parameters, "numRows")


def counted(parameters: Mapping[str, str], name: str) -> int | None:
    """Hive's statistic; ``None`` for -1 and 0, which mean that it is not known."""
    return _number(parameters, name) or None


def distinct_of(parameters: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Pairs of a column and its number of distinct values, as ANALYZE TABLE has found it."""
    end = ".distinctCount"
    return tuple(
        (name[len(_OF_COLUMNS) : -len(end)].lower(), int(text))
        for name, text in sorted(parameters.items())
        if name.startswith(_OF_COLUMNS) and name.endswith(end)
    )


def view_definition(
    text: str | None, namespace: Sequence[str], columns: Iterable[str]
) -> ViewDefinition | None:
    """A view's query as Spark stores it; ``None`` for a table or another catalog's view."""
    if text is None or len(namespace) != 2 or namespace[0] != _SESSION_CATALOG:
        return None
    return ViewDefinition(text, namespace[1].lower(), tuple(name.lower() for name in columns))


def definition_of(text: str | None, parameters: Mapping[str, str]) -> ViewDefinition | None:
    """A view's query from its expanded text and its properties; ``None`` if Spark has no such."""
    namespace = _numbered(
        parameters, "view.catalogAndNamespace.numParts", "view.catalogAndNamespace.part"
    )
    before_spark_3 = parameters.get("view.default.database")
    if not namespace and before_spark_3:
        namespace = [_SESSION_CATALOG, before_spark_3]
    columns = _numbered(parameters, "view.query.out.numCols", "view.query.out.col")
    return view_definition(text, namespace, columns)


def _numbered(parameters: Mapping[str, str], count: str, prefix: str) -> list[str]:
    """The values of ``prefix.0``, ``prefix.1`` and so on, as many as ``count`` says."""
    try:
        return [parameters[f"{prefix}.{at}"] for at in range(int(parameters.get(count) or 0))]
    except KeyError as error:
        raise MetastoreError(
            f"the properties that Spark stores of a table or view lack {error}"
        ) from None


def _number(parameters: Mapping[str, str], name: str) -> int | None:
    text = parameters.get(name) or ""
    return int(text) if text.isdigit() else None


def _type_of(field: Mapping[str, Any]) -> str:
    """The type as Spark's DataType.simpleString gives it, CHAR and VARCHAR with their lengths."""
    told = field.get("metadata", {})
    exact = told.get("__CHAR_VARCHAR_TYPE_STRING")
    text = exact or _type_text(field["type"], field["name"], told.get("__COLLATIONS", {}))
    return str(text).lower()


def _type_text(type_: Any, path: str, collations: Mapping[str, str]) -> str:
    """The Hive type for a type of Spark's JSON schema; ``path`` is its place in the field.

    >>> _type_text({"type": "array", "elementType": "long", "containsNull": True}, "", {})
    'array<bigint>'
    >>> _type_text("string", "name", {"name": "icu.UNICODE_CI"})
    'string collate UNICODE_CI'
    """
    if isinstance(type_, str):
        if type_ == "string" and path in collations:
            return f"string collate {collations[path].rpartition('.')[2]}"
        return _TYPES.get(type_, type_)
    if type_["type"] == "array":
        return f"array<{_type_text(type_['elementType'], f'{path}.element', collations)}>"
    if type_["type"] == "map":
        key = _type_text(type_["keyType"], f"{path}.key", collations)
        return f"map<{key},{_type_text(type_['valueType'], f'{path}.value', collations)}>"
    if type_["type"] == "struct":  # a field inside has its own metadata
        fields = (f"{field['name']}:{_type_inside(field)}" for field in type_["fields"])
        return f"struct<{','.join(fields)}>"
    return _type_text(type_["sqlType"], path, collations)  # a user-defined type over another


def _type_inside(field: Mapping[str, Any]) -> str:
    collations = field.get("metadata", {}).get("__COLLATIONS", {})
    return _type_text(field["type"], field["name"], collations)
