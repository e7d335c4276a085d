"""Iceberg tables of a Hive Metastore, read by their names in Spark's own catalog.

The metastore says that their provider is Hive.
"""

from __future__ import annotations

import pytest

from tests.lakes.runs import rows_of, run

ROWS = (
    "SELECT id, date_add(DATE'2024-01-01', CAST(id % 20 AS INT)) AS day, id % 3 AS v FROM range({})"
)


@pytest.fixture(scope="module")
def tables(lake):
    """A session whose own catalog also reads Iceberg tables; others of this JVM do not."""
    lake = lake.newSession()
    lake.conf.set("spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog")
    lake.conf.set("spark.sql.catalog.spark_catalog.type", "hive")
    lake.sql("CREATE NAMESPACE hms.shared")
    rows = ROWS.format(200)
    lake.sql(f"CREATE TABLE hms.shared.fact USING iceberg PARTITIONED BY (day) AS {rows}")
    lake.sql(f"CREATE TABLE hms.shared.plain USING iceberg PARTITIONED BY (day) AS {rows}")
    lake.sql(f"CREATE TABLE shared.picked USING parquet AS {ROWS.format(3)}")
    yield lake
    for name in ("fact", "plain"):
        lake.sql(f"DROP TABLE hms.shared.{name} PURGE")
    lake.sql("DROP TABLE shared.picked")
    lake.sql("DROP NAMESPACE hms.shared")


def test_the_metastore_entry_has_provider_hive_and_table_type_iceberg(tables):
    catalog = tables._jsparkSession.sessionState().catalog()
    identifier = tables._jvm.org.apache.spark.sql.catalyst.TableIdentifier
    found = catalog.getTableRawMetadata(identifier("fact", tables._jvm.scala.Some("shared")))
    assert found.provider().get() == "hive"
    assert found.properties().get("table_type").get() == "ICEBERG"


@pytest.mark.parametrize("name", ["shared.fact", "spark_catalog.shared.fact", "hms.shared.fact"])
def test_a_join_with_an_iceberg_table_of_the_session_catalog_is_restricted(tables, tmp_path, name):
    sql = f"SELECT f.id, p.v FROM {name} f JOIN shared.picked p ON f.day = p.day"
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert (found.reasons, len(found.rows)) == ({"f": "RESTRICTED"}, 30)
    assert [read.files for read in found.report.reads if read.table.endswith("fact")] == [3]


def test_a_merge_into_an_iceberg_table_of_the_session_catalog_is_restricted(tables, tmp_path):
    merge = (
        "MERGE INTO {} f USING (SELECT id + 1 AS id, day, v + 7 AS v FROM shared.picked) p "
        "ON f.id = p.id AND f.day = p.day WHEN MATCHED THEN UPDATE SET v = p.v "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    found = run(tables, merge.format("shared.fact"), tmp_path)
    tables.sql(merge.format("hms.shared.plain"))
    assert found.reasons["f"] == "RESTRICTED"
    rows = rows_of(tables, "SELECT * FROM shared.fact")
    assert rows == rows_of(tables, "SELECT * FROM hms.shared.plain")
    assert len(rows) == 203
