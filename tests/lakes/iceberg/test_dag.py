"""The example DAG: its MERGE of two days writes what plain Spark writes, and reads their files."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.lakes.runs import rows_of
from tests.operators.test_dag import start, summary  # noqa: F401 - a fixture

SQL = Path(__file__).parents[3] / "dags" / "sql" / "upsert_orders.sql"


@pytest.fixture(params=["hms", "rest"])
def shop(request, lake, monkeypatch, metastore_service, rest_service):
    """A session, and the catalog with the tables; the sensor's connection is of that catalog."""
    catalog = request.param
    connection = {
        "hms": {"host": metastore_service.uri, "extra": {"type": "hive"}},
        "rest": {
            "host": rest_service.uri,
            "login": rest_service.client_id,
            "password": rest_service.client_secret,
        },
    }[catalog]
    connection = json.dumps({"conn_type": "iceberg", **connection})
    monkeypatch.setenv("AIRFLOW_CONN_ICEBERG_DEFAULT", connection)
    monkeypatch.setenv("AIRFLOW_VAR_ICEBERG_CONF", '{"spark.jars": "those of the session"}')
    lake.sql(f"CREATE NAMESPACE {catalog}.shop")
    for name in ("orders", "plain"):
        lake.sql(
            f"CREATE TABLE {catalog}.shop.{name} USING iceberg PARTITIONED BY (day) AS "
            "SELECT id, date_add(DATE'2025-12-01', cast(id % 30 as int)) AS day, "
            "'new' AS status, CAST(id AS decimal(9,2)) AS amount FROM range(300)"
        )
    lake.sql(
        f"CREATE TABLE {catalog}.shop.changed_orders USING iceberg PARTITIONED BY (changed_on) AS "
        "SELECT * FROM VALUES (3L, DATE'2025-12-04', 'paid', 3.5BD, DATE'2026-01-01'), "
        "(1000L, DATE'2026-01-01', 'new', 9.0BD, DATE'2026-01-01'), "
        "(3L, DATE'2025-12-04', 'sent', 3.5BD, DATE'2026-01-02') "
        "AS t(id, day, status, amount, changed_on)"
    )
    yield lake, catalog
    for name in ("orders", "plain", "changed_orders"):
        lake.sql(f"DROP TABLE {catalog}.shop.{name}")
    lake.sql(f"DROP NAMESPACE {catalog}.shop")


def test_the_example_dag_writes_two_days_as_plain_spark_does(shop, start):  # noqa: F811
    lake, catalog = shop
    for day in ("2026-01-01", "2026-01-02"):
        at = datetime.fromisoformat(day).replace(tzinfo=timezone.utc)
        found = start("upsert_orders", logical_date=at, run_conf={"catalog": catalog})
        assert found.state == "success"
        assert found.get_task_instance("changes_are_there").xcom_pull(
            task_ids="changes_are_there"
        ) == {"required": 1}
        told = summary(found, "changed_orders")
        reasons = {each["alias"]: each["reason"] for each in told["decisions"]}
        assert reasons == {"o": "RESTRICTED", "changed_orders": "OWN_CONDITION"}
        read = {each["table"]: each["files"] for each in told["reads"]}
        assert read[f"{catalog}.shop.orders"] <= 2
        text = SQL.read_text().replace("{{ params.catalog }}.shop.orders", f"{catalog}.shop.plain")
        text = text.replace("{{ params.catalog }}", catalog)
        lake.sql(text.replace("{{ ds | default(params.day, true) }}", day))
    lake.sql(f"REFRESH TABLE {catalog}.shop.orders")
    rows = rows_of(lake, f"SELECT * FROM {catalog}.shop.orders")
    assert rows == rows_of(lake, f"SELECT * FROM {catalog}.shop.plain")
    assert {row[0]: row[2] for row in rows if row[0] in (3, 1000)} == {3: "sent", 1000: "new"}
