"""The example DAG: its MERGE of two days writes what plain Spark writes, and reads their files."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.lakes.runs import rows_of
from tests.operators.test_dag import start, summary  # noqa: F401 - a fixture

SQL = Path(__file__).parents[3] / "dags" / "sql" / "upsert_orders.sql"


@pytest.fixture
def shop(lake, monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW_VAR_ICEBERG_JARS", "the runtime of the session that runs")
    monkeypatch.setenv("AIRFLOW_VAR_ICEBERG_WAREHOUSE", str(tmp_path))
    lake.sql("CREATE NAMESPACE lake.shop")
    for name in ("orders", "plain"):
        lake.sql(
            f"CREATE TABLE lake.shop.{name} USING iceberg PARTITIONED BY (day) AS "
            "SELECT id, date_add(DATE'2025-12-01', cast(id % 30 as int)) AS day, "
            "'new' AS status, CAST(id AS decimal(9,2)) AS amount FROM range(300)"
        )
    lake.sql(
        "CREATE TABLE lake.shop.changed_orders USING iceberg PARTITIONED BY (changed_on) AS "
        "SELECT * FROM VALUES (3L, DATE'2025-12-04', 'paid', 3.5BD, DATE'2026-01-01'), "
        "(1000L, DATE'2026-01-01', 'new', 9.0BD, DATE'2026-01-01'), "
        "(3L, DATE'2025-12-04', 'sent', 3.5BD, DATE'2026-01-02') "
        "AS t(id, day, status, amount, changed_on)"
    )
    yield lake
    for name in ("orders", "plain", "changed_orders"):
        lake.sql(f"DROP TABLE lake.shop.{name}")


def test_two_days(shop, start):  # noqa: F811
    for day in ("2026-01-01", "2026-01-02"):
        at = datetime.fromisoformat(day).replace(tzinfo=timezone.utc)
        found = start("upsert_orders", logical_date=at)
        assert found.state == "success"
        told = summary(found, "changed_orders")
        reasons = {each["alias"]: each["reason"] for each in told["decisions"]}
        assert reasons == {"o": "RESTRICTED", "changed_orders": "OWN_CONDITION"}
        read = {each["table"]: each["files"] for each in told["reads"]}
        assert read["lake.shop.orders"] <= 2
        text = SQL.read_text().replace("lake.shop.orders", "lake.shop.plain")
        shop.sql(text.replace("{{ ds | default(params.day, true) }}", day))
    shop.sql("REFRESH TABLE lake.shop.orders")
    rows = rows_of(shop, "SELECT * FROM lake.shop.orders")
    assert rows == rows_of(shop, "SELECT * FROM lake.shop.plain")
    assert {row[0]: row[2] for row in rows if row[0] in (3, 1000)} == {3: "sent", 1000: "new"}
