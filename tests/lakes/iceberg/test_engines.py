"""PyIceberg reads by lists that Spark has made."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from airflow_hive_opt.engines.iceberg import row_filter
from tests.lakes.engines import (
    COLUMNS,
    KEYS,
    NULLS,
    ROWS,
    ZONE,
    join_on,
    plain_ids,
    scan_by_spark,
)


@pytest.fixture(scope="module")
def session(lake):
    before = lake.conf.get("spark.sql.session.timeZone")
    lake.conf.set("spark.sql.session.timeZone", ZONE)
    lake.sql("CREATE NAMESPACE lake.engines")
    lake.sql(f"CREATE TABLE lake.engines.days USING iceberg AS {KEYS}")
    for column in COLUMNS:
        lake.sql(
            f"CREATE TABLE lake.engines.by_{column} USING iceberg PARTITIONED BY ({column}) AS "
            f"{ROWS} UNION ALL {NULLS}"
        )
    yield lake
    lake.conf.set("spark.sql.session.timeZone", before)


def opened_by_pyiceberg(session, name):
    folder = Path(session.conf.get("spark.sql.catalog.lake.warehouse"), "engines", name, "metadata")
    number = (folder / "version-hint.text").read_text().strip()
    return StaticTable.from_metadata(str(folder / f"v{number}.metadata.json"))


@pytest.mark.parametrize("column", COLUMNS)
def test_reads_by_keys_of_each_type(session, tmp_path, column):
    sql = join_on(f"lake.engines.by_{column}", "lake.engines.days", column)
    scan = scan_by_spark(session, sql, tmp_path)
    table = opened_by_pyiceberg(session, f"by_{column}")
    read = table.scan(row_filter=row_filter(scan, table))
    found = read.to_arrow()
    assert {*found["id"].to_pylist()} == {*plain_ids(session, sql)}
    assert len(list(read.plan_files())) == len({*found[column].to_pylist()})
