"""Tables as Hive and as Spark leave them in a metastore; the properties are Spark 4.3's own."""

from __future__ import annotations

import json

from pymetastore.hive_metastore.ttypes import FieldSchema, Order, Partition, Table

from airflow_hive_opt.metastores.hive_tables import partition_of, table_of
from airflow_hive_opt.statement.catalog import Buckets, Column
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


def test_a_hive_table():
    hive = hive_table(totalSize="12", numRows="-1", numFiles="0")
    hive.sd.bucketCols, hive.sd.numBuckets = ["Id"], 4
    hive.sd.sortCols = [Order("Id", 1), Order("v", 0)]
    table = table_of(hive)
    assert table.name == "dw.t"
    assert (table.total_bytes, table.rows, table.files) == (12, None, None)
    assert table.buckets == Buckets(("id",), 4, (("id", "asc"), ("v", "desc")))
    assert table.partitions_in_metastore


def test_columns_that_only_spark_can_say():
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


def test_who_manages_the_partitions():
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


def test_a_view():
    hive = hive_table()
    hive.sd.location, hive.viewExpandedText = None, "SELECT 1"
    assert (table_of(hive).view, table_of(hive).location) == ("SELECT 1", None)


def test_statistics_of_a_partition():
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
