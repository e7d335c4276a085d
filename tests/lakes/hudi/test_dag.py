"""The example DAG: two days write what plain Spark writes, and read their days' files."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.lakes.runs import rows_of
from tests.operators.test_dag import start, summary  # noqa: F401 - a fixture

SQL = Path(__file__).parents[3] / "dags" / "sql" / "upsert_orders_hudi.sql"


@pytest.fixture
def shop(lake, monkeypatch):
    monkeypatch.setenv("AIRFLOW_VAR_HUDI_JAR", "the bundle of the session that runs")
    lake.sql("CREATE DATABASE shop")
    for name in ("orders", "plain"):
        lake.sql(
            f"CREATE TABLE shop.{name} (id bigint, status string, amount decimal(9,2), day date) "
            "USING hudi PARTITIONED BY (day) TBLPROPERTIES (primaryKey = 'id', "
            "'hoodie.spark.sql.insert.into.operation' = 'upsert')"
        )
        lake.sql(
            f"INSERT INTO shop.{name} SELECT id, 'new' AS status, "
            "CAST(id AS decimal(9,2)) AS amount, "
            "date_add(DATE'2025-12-01', cast(id % 30 as int)) AS day FROM range(60)"
        )
    lake.sql(
        "CREATE TABLE shop.changed_orders USING parquet AS "
        "SELECT * FROM VALUES (3L, DATE'2025-12-04', 'paid', NULL, DATE'2026-01-01'), "
        "(1000L, DATE'2026-01-01', 'new', 9.0BD, DATE'2026-01-01'), "
        "(3L, DATE'2025-12-04', 'sent', NULL, DATE'2026-01-02') "
        "AS t(id, day, status, amount, changed_on)"
    )
    yield lake
    lake.sql("DROP DATABASE shop CASCADE")


def test_the_example_dag_writes_two_days_as_plain_spark_does(shop, start):  # noqa: F811
    for day in ("2026-01-01", "2026-01-02", "2026-01-02"):  # the last one is a retry
        at = datetime.fromisoformat(day).replace(tzinfo=timezone.utc)
        found = start("upsert_orders_hudi", logical_date=at)
        assert found.state == "success"
        told = summary(found, "changed_orders")
        assert {each["alias"]: each["reason"] for each in told["decisions"]}["o"] == "RESTRICTED"
        files = [each["files"] for each in told["decisions"] if each["alias"] == "o"]
        assert files == [1]
        text = SQL.read_text().replace("shop.orders ", "shop.plain ")
        text = text.replace("INSERT INTO shop.orders", "INSERT INTO shop.plain")
        shop.sql(text.replace("{{ ds | default(params.day, true) }}", day))
    shop.sql("REFRESH TABLE shop.orders")
    content = "SELECT id, status, amount, day FROM shop.{}"
    rows = rows_of(shop, content.format("orders"))
    assert rows == rows_of(shop, content.format("plain"))
    assert {row[0]: row[1] for row in rows if row[0] in (3, 1000)} == {3: "sent", 1000: "new"}
    assert len(rows) == 61
