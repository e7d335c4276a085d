"""Tables as Hive and as Spark leave them in a metastore; the properties are Spark 4.3's own."""

from __future__ import annotations

import json

import pytest
from pymetastore.hive_metastore.ttypes import FieldSchema, Order, Partition, Table

from airflow_hive_opt.metastores.hive_tables import (
    UNKNOWN_SIZE,
    partition_of,
    storage_of,
    storage_of_partition,
    table_of,
)
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.statement.catalog import Buckets, Column, ViewDefinition
from tests.services.thrift import storage

FIELDS = [
    {"name": "Id", "type": "long", "nullable": True, "metadata": {}},
    {
        "name": "v",
        "type": "string",
        "nullable": True,
        "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"},
    },
    {
        "name": "m",
        "type": {
            "type": "map",
            "keyType": "string",
            "valueType": {
                "type": "struct",
                "fields": [
                    {"name": "a", "type": "integer", "nullable": True, "metadata": {}},
                    {"name": "b", "type": "decimal(7,2)", "nullable": True, "metadata": {}},
                ],
            },
            "valueContainsNull": True,
        },
        "nullable": True,
        "metadata": {},
    },
    {"name": "ds", "type": "string", "nullable": True, "metadata": {}},
]
SCHEMA = json.dumps({"type": "struct", "fields": FIELDS})
PLACEHOLDER = [("col", "array<string>")]


def hive_table(columns=(("id", "bigint"),), **parameters):
    return Table(
        dbName="Dw",
        tableName="T",
        sd=storage(columns, "file:/t"),
        partitionKeys=[FieldSchema("ds", "string", "")],
        parameters={name.replace("__", "."): text for name, text in parameters.items()},
    )


def test_statistics_and_buckets_of_a_hive_table():
    hive = hive_table(totalSize="12", numRows="-1", numFiles="0")
    hive.sd.bucketCols, hive.sd.numBuckets = ["Id"], 4
    hive.sd.sortCols = [Order("Id", 1), Order("v", 0)]
    table = table_of(hive)
    assert table.name == "dw.t"
    assert (table.total_bytes, table.rows, table.files) == (12, None, None)
    assert table.buckets == Buckets(("id",), 4, (("id", "asc"), ("v", "desc")))
    assert table.partitions_in_metastore


def test_other_spellings_of_types_are_normalized():
    """Spark reads them, and Glue does not check what its users write."""
    spelled = ("Integer", "decimal", "decimal(9)", "array<decimal>", "struct<long:LONG,byte:byte>")
    found = table_of(hive_table([("c", type_) for type_ in spelled])).columns
    expected = ["int", "decimal(10,0)", "decimal(9,0)", "array<decimal(10,0)>"]
    assert [column.type for column in found] == [*expected, "struct<long:bigint,byte:tinyint>"]


def test_columns_come_from_sparks_properties():
    expected = (
        Column("id", "bigint"),
        Column("v", "varchar(5)"),
        Column("m", "map<string,struct<a:int,b:decimal(7,2)>>"),
    )
    whole = {"spark.sql.sources.schema": SCHEMA}
    parts = {
        "spark.sql.sources.schema.numParts": "2",
        "spark.sql.sources.schema.part.0": SCHEMA[:100],
        "spark.sql.sources.schema.part.1": SCHEMA[100:],
    }
    for properties in (whole, parts):
        hive = hive_table(PLACEHOLDER)
        hive.parameters = {"spark.sql.sources.provider": "json", **properties}
        table = table_of(hive)
        assert table.columns == expected
        assert table.partition_columns == (Column("ds", "string"),)
        assert table.format == "json"


def test_table_properties_tell_whether_partitions_are_in_the_metastore():
    by_spark = {"spark.sql.partitionProvider": "catalog"}
    parquet, delta, hudi = (
        {"spark.sql.sources.provider": name} for name in ("parquet", "Delta", "hudi")
    )
    cases = [({}, True), (parquet, False), ({**parquet, **by_spark}, True)]
    cases += [(delta, False), ({**delta, **by_spark}, False), ({**hudi, **by_spark}, False)]
    for properties, expected in cases:
        hive = hive_table()
        hive.parameters = properties
        assert table_of(hive).partitions_in_metastore is expected


def test_a_view_has_its_query_and_no_location():
    hive = hive_table()
    hive.sd.location, hive.viewExpandedText = None, "SELECT 1"
    assert (table_of(hive).view, table_of(hive).location) == ("SELECT 1", None)


def test_a_partition_has_its_statistics():
    found = Partition(
        values=["__HIVE_DEFAULT_PARTITION__", "8"],
        sd=storage([], "file:/t/p"),
        parameters={"totalSize": "1748", "spark.sql.statistics.numRows": "1"},
    )
    partition = partition_of(found)
    assert partition.values == (None, "8")
    assert (partition.location, partition.bytes, partition.rows) == ("file:/t/p", 1748, 1)
    found.parameters = {"numRows": "-1", "totalSize": "0"}
    assert (partition_of(found).bytes, partition_of(found).rows) == (None, None)


def test_a_table_that_was_altered_without_spark_has_hives_columns():
    """Spark then takes Hive's columns, but not for a length of text or a collation alone."""
    fields = [
        {"name": "Id", "type": "long", "metadata": {}},
        {"name": "v", "type": "string", "metadata": {"__COLLATIONS": {"v": "icu.UNICODE_CI"}}},
        {"name": "ds", "type": "string", "metadata": {}},
    ]
    schema = {"spark.sql.sources.schema": json.dumps({"fields": fields})}
    unchanged = hive_table([("id", "bigint"), ("v", "string")])
    unchanged.parameters = schema
    assert table_of(unchanged).columns[1] == Column("v", "string collate unicode_ci")
    for columns in ([("id", "int"), ("v", "string")], [("id", "bigint")], [("id", "bigint")] * 3):
        altered = hive_table(columns)
        altered.parameters = schema
        assert [(each.name, each.type) for each in table_of(altered).columns] == columns
    altered.parameters = {**schema, "spark.sql.sources.provider": "orc"}
    assert [column.name for column in table_of(altered).columns] == ["id", "v"]


def test_a_missing_part_of_sparks_schema_is_an_error():
    hive = hive_table()
    hive.parameters = {"spark.sql.sources.schema.numParts": "1"}
    with pytest.raises(MetastoreError, match=r"lack 'spark.sql.sources.schema.part.0'$"):
        table_of(hive)


def test_sparks_statistics_precede_hives():
    spark = {"spark.sql.statistics.totalSize": "0", "spark.sql.statistics.numRows": "0"}
    hive = {"totalSize": "12", "numRows": "3", "rawDataSize": "99"}
    for parameters, bytes_, rows in (
        (hive, 12, 3),
        ({**hive, **spark}, 0, 0),
        ({**hive, "totalSize": "0"}, 99, 3),
        ({"totalSize": "-1", "rawDataSize": "0"}, None, None),
    ):
        table = hive_table()
        table.parameters = parameters
        assert (table_of(table).total_bytes, table_of(table).rows) == (bytes_, rows)


def test_a_serde_table_without_statistics_has_an_unknown_size():
    """Spark neither measures it nor takes it for small."""
    hive = hive_table()
    hive.sd.serdeInfo.serializationLib = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    assert (table_of(hive).by_serde, table_of(hive).total_bytes) == (True, None)
    hive.partitionKeys = []
    assert (table_of(hive).by_serde, table_of(hive).total_bytes) == (False, UNKNOWN_SIZE)


def test_definitions_of_views_have_output_columns_and_database():
    output = {"view.query.out.numCols": "1", "view.query.out.col.0": "A"}
    spark_3 = {
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": "spark_catalog",
        "view.catalogAndNamespace.part.1": "Dw",
    }
    spark_2 = {"view.default.database": "dw"}
    other = {**spark_3, "view.catalogAndNamespace.part.0": "lake"}
    expected = ViewDefinition("SELECT A FROM t", "dw", ("a",))
    for properties, found in ((spark_3, expected), (spark_2, expected), (other, None), ({}, None)):
        hive = hive_table([("a", "int")], **properties)
        hive.partitionKeys, hive.viewExpandedText = [], "SELECT A FROM t"
        hive.parameters = {**output, **properties}
        table = table_of(hive)
        assert (table.definition, table.total_bytes) == (found, None)
        assert storage_of(hive) is None


def test_files_that_are_not_all_rows_have_no_format():
    """Another reader of the same SerDe, deltas of rows, a format that lists its own files."""
    hive = hive_table()
    assert storage_of(hive).format == "parquet"
    hive.sd.inputFormat = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert storage_of(hive).format == ""
    for name, text in (("transactional", "TRUE"), ("table_type", "ICEBERG")):
        hive = hive_table(**{name: text})
        assert storage_of(hive).format == ""
    assert table_of(hive).provider == "iceberg"
    avro = hive_table()
    avro.sd.serdeInfo.serializationLib = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
    avro.sd.inputFormat = "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat"
    assert storage_of(avro).format == "avro"
    avro.sd.serdeInfo.parameters = {"avro.schema.url": "file:/schema"}
    assert storage_of(avro).format == ""


def test_a_partition_of_another_format_is_read_as_by_spark():
    """Spark reads it as the table's format if it has a reader of its own, else as its own."""
    text_serde = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    parquet, text = hive_table(), hive_table()
    text.sd.serdeInfo.serializationLib = text_serde
    text.sd.serdeInfo.parameters = {"field.delim": "|", "Escape.Delim": "!"}
    text.sd.inputFormat = "org.apache.hadoop.mapred.TextInputFormat"
    part = Partition(values=["1"], sd=storage([], "file:/t/p/"))
    assert storage_of_partition(storage_of(parquet), part).format == "parquet"
    found = storage_of_partition(storage_of(text), part)
    assert (found.format, found.location) == ("parquet", "file:/t/p")
    part.sd.inputFormat, part.sd.serdeInfo = text.sd.inputFormat, text.sd.serdeInfo
    assert storage_of_partition(storage_of(parquet), part).format == ""
    table = storage_of(text)
    part.sd.serdeInfo.parameters = {"field.delim": ";"}
    found = storage_of_partition(table, part)
    assert (found.format, found.serde) == ("text", text_serde)
    assert found.properties == {"field.delim": ";", "escape.delim": "!"}
