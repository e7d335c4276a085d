"""delta-rs reads and merges by lists that Spark has made."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_hive_opt.engines.delta import merge_predicate, predicate
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
from tests.spark.test_bound_names import drop_database


@pytest.fixture(scope="module")
def session(lake, metastore_service):
    before = lake.conf.get("spark.sql.session.timeZone")
    lake.conf.set("spark.sql.session.timeZone", ZONE)
    lake.sql(f"CREATE DATABASE engines LOCATION '{metastore_service.warehouse}/engines'")
    lake.sql(f"CREATE TABLE engines.days USING parquet AS {KEYS}")
    for column in COLUMNS:
        lake.sql(
            f"CREATE TABLE engines.by_{column} USING delta PARTITIONED BY ({column}) AS "
            f"{ROWS} UNION ALL {NULLS}"
        )
    yield lake
    drop_database(lake, "engines")
    lake.conf.set("spark.sql.session.timeZone", before)


def opened_by_delta_rs(session, name):
    (row,) = session.sql(f"DESCRIBE DETAIL {name}").collect()
    return DeltaTable(row["location"])


@pytest.mark.parametrize("column", COLUMNS)
def test_reads_by_keys_of_each_type(session, tmp_path, column):
    sql = join_on(f"engines.by_{column}", "engines.days", column)
    scan = scan_by_spark(session, sql, tmp_path)
    table = opened_by_delta_rs(session, f"engines.by_{column}")
    condition = predicate(scan, table)
    found = pa.table(table.scan(columns=["id", column], predicate=condition))
    kept = {*found["id"].to_pylist()}
    assert kept == {*plain_ids(session, sql)}
    assert len(table.file_uris(file_pruning_predicate=condition)) == len(
        {*found[column].to_pylist()}
    )


def test_a_merge_by_the_keys_of_its_source(session, tmp_path):
    session.sql(
        "CREATE TABLE engines.target USING delta PARTITIONED BY (day) AS "
        f"SELECT id, day, 0L AS v FROM ({ROWS})"
    )
    session.sql(
        "CREATE TABLE engines.changed USING parquet AS SELECT * FROM VALUES "
        "(1L, DATE'2024-03-09', 7L), (50L, DATE'2024-03-10', 8L), (51L, NULL, 9L) AS t(id, day, v)"
    )
    merge = (
        "MERGE INTO {} AS t USING engines.changed AS s ON t.id = s.id AND t.day = s.day "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    scan = scan_by_spark(session, merge.format("engines.target"), tmp_path)
    session.sql("CREATE TABLE engines.plain USING delta AS SELECT * FROM engines.target")
    session.sql(merge.format("engines.plain"))
    table = opened_by_delta_rs(session, "engines.target")
    changed = [row.asDict() for row in session.table("engines.changed").collect()]
    types = [("id", pa.int64()), ("day", pa.date32()), ("v", pa.int64())]
    rows = pa.Table.from_pylist(changed, pa.schema(types))
    on = merge_predicate("t.id = s.id AND t.day = s.day", scan, table, rows, "t")
    merged = table.merge(rows, on, source_alias="s", target_alias="t")
    done = merged.when_matched_update_all().when_not_matched_insert_all().execute()
    assert done["num_target_files_scanned"] == 2
    session.sql("REFRESH TABLE engines.target")
    found, plain = (
        sorted(map(tuple, session.table(f"engines.{name}").collect()), key=repr)
        for name in ("target", "plain")
    )
    assert found == plain
