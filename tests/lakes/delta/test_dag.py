"""The example DAG: it waits for the day's changes, and its MERGE writes what plain Delta writes."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.lakes.databases import drop_database
from tests.lakes.runs import rows_of
from tests.operators.test_dag import start, summary  # noqa: F401 - a fixture

SQL = Path(__file__).parents[3] / "dags" / "sql" / "upsert_orders_delta.sql"


@pytest.fixture
def shop(lake, monkeypatch, metastore_service):
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", metastore_service.connection)
    monkeypatch.setenv("AIRFLOW_VAR_DELTA_JARS", "the jars of the session that runs")
    lake.sql("CREATE DATABASE shop")
    for name in ("orders", "plain"):
        lake.sql(
            f"CREATE TABLE shop.{name} USING delta PARTITIONED BY (day) AS "
            "SELECT id, date_add(DATE'2025-12-01', cast(id % 30 as int)) AS day, "
            "'new' AS status, CAST(id AS decimal(9,2)) AS amount FROM range(0, 300, 1, 1)"
        )
    lake.sql(
        "CREATE TABLE shop.changed_orders USING delta PARTITIONED BY (changed_on) AS "
        "SELECT * FROM VALUES (3L, DATE'2025-12-04', 'paid', 3.5BD, DATE'2026-01-01'), "
        "(1000L, DATE'2026-01-01', 'new', 9.0BD, DATE'2026-01-01'), "
        "(3L, DATE'2025-12-04', 'sent', 3.5BD, DATE'2026-01-02') "
        "AS t(id, day, status, amount, changed_on)"
    )
    yield lake
    drop_database(lake, "shop")


def test_the_example_dag_writes_two_days_as_plain_delta_does(shop, start):  # noqa: F811
    for day in ("2026-01-01", "2026-01-02"):
        at = datetime.fromisoformat(day).replace(tzinfo=timezone.utc)
        found = start("upsert_orders_delta", logical_date=at)
        assert found.state == "success"
        told = summary(found, "changed_orders")
        reasons = {each["alias"]: each["reason"] for each in told["decisions"]}
        assert reasons == {"o": "RESTRICTED", "changed_orders": "OWN_CONDITION"}
        (orders, _) = told["decisions"]
        assert orders["files"] <= 2 < orders["total_files"]
        text = SQL.read_text().replace("shop.orders", "shop.plain")
        shop.sql(text.replace("{{ ds | default(params.day, true) }}", day))
    rows = rows_of(shop, "SELECT * FROM shop.orders")
    assert rows == rows_of(shop, "SELECT * FROM shop.plain")
    assert {row[0]: row[2] for row in rows if row[0] in (3, 1000)} == {3: "sent", 1000: "new"}
