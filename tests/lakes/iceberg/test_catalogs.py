"""Each type of catalog: reads, MERGE, counts, snapshots, and PyIceberg on the same tables."""

from __future__ import annotations

import json

import pytest

from airflow_hive_opt.hooks.iceberg_catalog import IcebergCatalogHook
from tests.lakes.iceberg.conftest import JDBC_DATABASE
from tests.lakes.runs import rows_of, run, run_apart
from tests.spark.stages import job_of, required_partitions

CATALOGS = ("lake", "hms", "db", "rest")
JOIN = "SELECT o.id, c.v FROM {0}.shop.orders o JOIN {0}.shop.changed c ON o.day = c.day"
MERGE = (
    "MERGE INTO {0}.shop.{1} o USING {0}.shop.changed c ON o.id = c.id AND o.day = c.day "
    "WHEN MATCHED THEN UPDATE SET v = c.v WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture(scope="module", params=CATALOGS)
def tables(request, lake):
    """A session and the name of its catalog, which has orders of 20 days, and changes of two."""
    catalog = request.param
    lake.sql(f"CREATE NAMESPACE {catalog}.shop")
    for name in ("orders", "plain"):
        lake.sql(
            f"CREATE TABLE {catalog}.shop.{name} USING iceberg PARTITIONED BY (day) AS SELECT id, "
            "date_add(DATE'2024-01-01', cast(id % 20 AS int)) AS day, 0 AS v FROM range(100)"
        )
    lake.sql(
        f"CREATE TABLE {catalog}.shop.changed USING iceberg AS SELECT * FROM VALUES "
        "(2L, DATE'2024-01-03', 7), (500L, DATE'2024-01-05', 8), (501L, DATE'2030-01-01', 9) "
        "AS t(id, day, v)"
    )
    yield lake, catalog
    for name in ("orders", "plain", "changed"):
        lake.sql(f"DROP TABLE {catalog}.shop.{name}")
    lake.sql(f"DROP NAMESPACE {catalog}.shop")


@pytest.fixture
def connection(monkeypatch, tables, metastore_service, postgres_server, rest_service):
    """An Airflow connection for PyIceberg; a catalog in a folder has none."""
    fields = {
        "hms": {"host": metastore_service.uri, "extra": {"type": "hive"}},
        "db": {
            "host": f"postgresql+psycopg://{postgres_server.host}:{postgres_server.port}/"
            f"{JDBC_DATABASE}",
            "login": postgres_server.user,
            "password": postgres_server.password,
            "extra": {"type": "sql"},
        },
        "rest": {
            "host": rest_service.uri,
            "login": rest_service.client_id,
            "password": rest_service.client_secret,
        },
    }.get(tables[1])
    if fields is None:
        pytest.skip("PyIceberg has no catalog in a folder")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "iceberg", **fields}))
    return "shop"


def test_each_type_of_catalog_reads_only_files_of_the_keys_in_a_join(tables, tmp_path):
    session, catalog = tables
    sql = JOIN.format(catalog)
    found = run(session, sql, tmp_path)
    assert found.rows == rows_of(session, sql)
    assert (found.reasons, found.files(f"{catalog}.shop.orders")) == ({"o": "RESTRICTED"}, 2)
    (planned,) = found.report.descriptor.planned_files
    assert (planned.files, planned.partitions, planned.total_files) == (2, 2, 20)


def test_each_type_of_catalog_can_hold_a_snapshot(tables, tmp_path):
    session, catalog = tables
    sql = JOIN.format(catalog)
    plain = rows_of(session, sql)

    def change():
        session.sql(f"INSERT INTO {catalog}.shop.changed VALUES (3, DATE'2024-01-04', 1)")

    try:
        found = run_apart(session, sql, tmp_path, change, hold_snapshots=True)
        assert found.rows == plain
        (snapshot,) = found.report.summary()["snapshots"]
        assert snapshot["held"]
        assert f"VERSION AS OF {snapshot['snapshot']}" in found.statement
    finally:
        session.sql(f"DELETE FROM {catalog}.shop.changed WHERE id = 3")


def test_each_type_of_catalog_tells_missing_partitions(tables, connection):
    session, catalog = tables
    (required,) = required_partitions(session, job_of(JOIN.format(catalog)))
    absent = IcebergCatalogHook(connection).get_conn().absent(required)
    assert [row[0].isoformat() for row in absent.tuples] == ["2030-01-01"]
    assert IcebergCatalogHook(connection).test_connection() == (True, "the catalog answers")


def test_each_type_of_catalog_merges_as_plain_spark(tables, tmp_path):
    """It is the last one, because the others count the files."""
    session, catalog = tables
    session.sql(MERGE.format(catalog, "plain"))
    found = run(session, MERGE.format(catalog, "orders"), tmp_path)
    assert found.reasons == {"o": "RESTRICTED"}
    assert found.files(f"{catalog}.shop.orders") <= 4
    rows = rows_of(session, f"SELECT * FROM {catalog}.shop.orders")
    assert rows == rows_of(session, f"SELECT * FROM {catalog}.shop.plain")
    assert len(rows) == 102
