"""Converts Thrift's tables and partitions to the planner's and the local task's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_hive_opt.metastores.partitions import Partition, value_of
from airflow_hive_opt.metastores.spark_properties import (
    HIVE,
    buckets_of,
    bytes_of,
    columns_of,
    counted,
    definition_of,
    distinct_of,
    lists_partitions,
    partition_columns_of,
    provider_of,
    rows_of,
)
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Buckets, Column, Table
from airflow_hive_opt.statement.lake_formats import ICEBERG, LAKE_FORMATS

PROJECTED = "projection.enabled"
"""A table's parameter: if ``true``, Athena computes the partitions, and the metastore has none."""
UNKNOWN_SIZE = 2**63 - 1
"""Bytes: Spark's own size of a table without statistics, so that it supplies no keys."""
_PLACEHOLDER = (Column("col", "array<string>"),)
_VIEW = "VIRTUAL_VIEW"
_FORMATS = {
    "parquet": "parquet",
    "orc": "orc",
    "avro": "avro",
    "rcfile": "rcfile",
    "sequencefile": "sequencefile",
    "text": "text",
}
# The format of the files for a SerDe together with an input format. Another pair may mean that not
# all files, or not all rows of a file, are the table's.
_HIVE = "org.apache.hadoop.hive"
_CSV_SERDE = f"{_HIVE}.serde2.OpenCSVSerde"
_AVRO_SERDE = f"{_HIVE}.serde2.avro.AvroSerDe"
_TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
_READ_AS = {
    (
        f"{_HIVE}.ql.io.parquet.serde.ParquetHiveSerDe",
        f"{_HIVE}.ql.io.parquet.MapredParquetInputFormat",
    ): "parquet",
    (f"{_HIVE}.ql.io.orc.OrcSerde", f"{_HIVE}.ql.io.orc.OrcInputFormat"): "orc",
    (f"{_HIVE}.serde2.lazy.LazySimpleSerDe", _TEXT_INPUT): "text",
    (_AVRO_SERDE, f"{_HIVE}.ql.io.avro.AvroContainerInputFormat"): "avro",
}
_SMALL = re.compile(r"\b(tiny|small)int\b(?!:)")
_ALIKE = re.compile(r"(var)?char\(\d+\)|string collate \w+")
# What Spark adds to the options of a table of its own formats.
_OF_HIVE = {"path", "serialization.format"}
# Other spellings that Spark reads; a metastore may have types as its users wrote them.
_SPELLINGS = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "decimal": "decimal(10,0)",
}
_SPELLED = re.compile(rf"\b({'|'.join(_SPELLINGS)})\b(?![:(])")
_PRECISION_ALONE = re.compile(r"\bdecimal\((\d+)\)")


def table_of(hive: Any) -> Table:
    """Converts a Thrift ``Table`` to the planner's table.

    Spark stores in table properties what Hive can't represent. As Spark does, this uses its
    columns, its statistics, and for tables of its own formats its location, before Hive's.
    ``by_serde`` assumes that ``spark.sql.hive.convertMetastoreParquet`` and
    ``spark.sql.hive.convertMetastoreOrc`` have their default, ``true``. Raises
    :class:`~airflow_hive_opt.metastores.metastore.MetastoreError` if a property is missing.
    """
    parameters, storage = hive.parameters or {}, hive.sd
    is_view = _is_view(hive)
    provider = provider_of(parameters)
    columns, partition_columns = _columns(hive, parameters, provider, is_view)
    by_serde = provider == HIVE and not is_view and not own_format(_serde(storage))
    total_bytes = None if is_view else bytes_of(parameters)
    if total_bytes is None and by_serde and not partition_columns:
        total_bytes = UNKNOWN_SIZE
    buckets = buckets_of(parameters) if provider != HIVE else None
    return Table(
        name=f"{hive.dbName}.{hive.tableName}".lower(),
        columns=columns,
        partition_columns=partition_columns,
        total_bytes=total_bytes,
        partitions_in_metastore=not partition_columns or _has_partitions(parameters, provider),
        by_serde=by_serde and bool(partition_columns),
        buckets=buckets or _buckets(storage),
        rows=rows_of(parameters),
        files=counted(parameters, "numFiles"),
        format=_format(provider, storage),
        view=hive.viewExpandedText or None,
        definition=definition_of(hive.viewExpandedText or None, parameters),
        location=None if is_view else _location(provider, storage),
        distinct=distinct_of(parameters),
        provider=_lake_format(provider, parameters),
        transactional=is_transactional(parameters),
    )


def is_transactional(parameters: Mapping[str, str]) -> bool:
    """Whether Hive's transactions decide which of the table's files count, as Hive reads it.

    >>> is_transactional({"transactional": "TRUE"}), is_transactional({"transactional": "false"})
    (True, False)
    """
    return any(
        name.lower() == "transactional" and text.lower() == "true"
        for name, text in parameters.items()
    )


def partition_of(hive: Any) -> Partition:
    """Converts a Thrift ``Partition`` to the local task's partition."""
    parameters = hive.parameters or {}
    return Partition(
        tuple(value_of(text) for text in hive.values),
        hive.sd.location if hive.sd else None,
        rows_of(parameters),
        bytes_of(parameters),
    )


def storage_of(hive: Any) -> Storage | None:
    """How the files of a Thrift ``Table`` are read; ``None`` for a view."""
    if _is_view(hive):
        return None
    parameters, storage = hive.parameters or {}, hive.sd
    provider = provider_of(parameters)
    location = _location(provider, storage) or ""
    properties = {name.lower(): text for name, text in _serde_properties(storage).items()}
    if provider != HIVE:
        options = {name: properties[name] for name in properties.keys() - _OF_HIVE}
        return Storage(location, "" if provider == "text" else provider, "", options, parameters)
    format_ = _read_as(storage)
    lists_its_files = is_transactional(parameters) or _lake_format(provider, parameters)
    if lists_its_files or _has_avro_schema(hive):
        format_ = ""
    return Storage(location, format_, _serde(storage), properties, parameters)


def storage_of_partition(table: Storage, hive: Any) -> Storage:
    """How the files of a Thrift ``Partition`` of a table are read.

    Spark's own reader reads every partition in the table's format. So a partition of another format
    has no format here.
    """
    storage = hive.sd
    located = replace(table, location=normal(storage.location or ""))
    if not table.serde:
        return located
    format_ = _read_as(storage) if table.format else ""
    if own_format(table.serde) and format_ != table.format:
        format_ = ""
    own = {name.lower(): text for name, text in _serde_properties(storage).items()}
    properties = {**table.properties, **own}
    return replace(located, format=format_, serde=_serde(storage), properties=properties)


def own_format(names: str) -> str:
    """The format in the names of provider and serde for which Spark has a reader; else empty.

    >>> own_format("org.apache.hadoop.hive.ql.io.orc.OrcSerde"), own_format("text")
    ('orc', '')
    """
    return next((format_ for format_ in ("parquet", "orc") if format_ in names.lower()), "")


def normal(location: str) -> str:
    """A location as Hadoop's ``Path`` writes it, without a slash at the end.

    >>> normal("s3://bucket/sales/"), normal("file:/")
    ('s3://bucket/sales', 'file:/')
    """
    scheme, colon, path = location.rpartition(":")
    return location if path in ("/", "//") else f"{scheme}{colon}{path.rstrip('/')}"


def _is_view(hive: Any) -> bool:
    return bool(hive.viewExpandedText) or hive.tableType == _VIEW


def _columns(
    hive: Any, parameters: Mapping[str, str], provider: str, is_view: bool
) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Data columns and partition columns; Hive's if a Hive table was altered without Spark."""
    columns = tuple(_of_serde(_column(field), _serde(hive.sd)) for field in hive.sd.cols or ())
    keys = tuple(_column(field) for field in hive.partitionKeys or ())
    own = columns_of(parameters)
    names = partition_columns_of(parameters) or tuple(column.name for column in keys)
    own_keys = tuple(column for name in names for column in own if column.name == name)
    own_columns = tuple(column for column in own if column.name not in names)
    if not own or (columns == _PLACEHOLDER and not own_columns):
        return columns, keys
    if (
        provider == HIVE
        and not is_view
        and _alike(own_columns + own_keys) != _alike(columns + keys)
    ):
        return columns, keys
    return own_columns, own_keys or keys


def _alike(columns: Iterable[Column]) -> list[tuple[str, str]]:
    """The columns without collations and lengths of texts, which Spark does not compare."""
    return [(column.name, _ALIKE.sub("string", column.type)) for column in columns]


def _column(field: Any) -> Column:
    spelled = _SPELLED.sub(lambda found: _SPELLINGS[found[1]], field.type.lower())
    return Column(field.name.lower(), _PRECISION_ALONE.sub(r"decimal(\1,0)", spelled))


def _of_serde(column: Column, serde: str) -> Column:
    """The column as the SerDe gives it: OpenCSVSerde has only text, Avro no small integers."""
    if serde == _CSV_SERDE:
        return Column(column.name, "string")
    return Column(column.name, _SMALL.sub("int", column.type)) if serde == _AVRO_SERDE else column


def _has_partitions(parameters: Mapping[str, str], provider: str) -> bool:
    return (
        parameters.get(PROJECTED, "").lower() != "true"
        and provider not in LAKE_FORMATS
        and (provider == HIVE or lists_partitions(parameters))
    )


def _lake_format(provider: str, parameters: Mapping[str, str]) -> str:
    """The table's format if it lists its own files; a table that Iceberg has made is Hive's."""
    if parameters.get("table_type", "").lower() == ICEBERG:
        return ICEBERG
    return provider if provider in LAKE_FORMATS else ""


def _format(provider: str, storage: Any) -> str:
    if provider != HIVE:
        return provider
    reader = (storage.inputFormat or "").lower()
    return next((name for part, name in _FORMATS.items() if part in reader), "")


def _has_avro_schema(hive: Any) -> bool:
    """Whether a table names an Avro schema, which its columns may differ from."""
    names = {*(hive.parameters or {}), *_serde_properties(hive.sd)}
    return any(name.startswith("avro.schema.") for name in names)


def read_as(serde: str, input_format: str) -> str:
    """The format as which Spark reads all files of a Hive table; empty if it is not known.

    >>> read_as("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", "org.some.Input")
    ''
    """
    return _READ_AS.get((serde, input_format), "")


def _read_as(storage: Any) -> str:
    return read_as(_serde(storage), storage.inputFormat or "")


def _buckets(storage: Any) -> Buckets | None:
    if not storage.bucketCols or (storage.numBuckets or 0) < 1:
        return None
    return Buckets(
        tuple(name.lower() for name in storage.bucketCols),
        storage.numBuckets,
        tuple((key.col.lower(), "asc" if key.order else "desc") for key in storage.sortCols or ()),
    )


def _location(provider: str, storage: Any) -> str | None:
    """The location; of a table of Spark's own formats, Hive's may be a placeholder."""
    path = _serde_properties(storage).get("path") if provider != HIVE else None
    location = path or storage.location
    return normal(location) if location else None


def _serde(storage: Any) -> str:
    return (storage.serdeInfo.serializationLib if storage.serdeInfo else None) or ""


def _serde_properties(storage: Any) -> Mapping[str, str]:
    return (storage.serdeInfo.parameters if storage.serdeInfo else None) or {}
