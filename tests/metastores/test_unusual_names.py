"""Partitions whose names are not as Spark writes their values, on each version of the metastore.

Hive 4 compares an integer with a partition's name as texts. A list of partitions that Spark passes
on as a filter would then lose them, as it loses them for plain Spark's literals.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from upath import UPath

from tests.services.thrift import add_partitions, thrift_client
from tests.spark.on_metastore import spark_on
from tests.spark.stages import job_of, join, prune, reported
from tests.spark.test_bound_names import drop_database

COLUMNS = [("id", "int")]
# By type: the name of a partition, and the text that Spark writes for its value.
UNUSUAL = {"int": ("08", "8"), "date": ("2020-1-5", "2020-01-05")}


@pytest.fixture(scope="module")
def session(spark, metastore_service) -> Iterator:
    with spark_on(spark, metastore_service) as session:
        session.sql(f"CREATE DATABASE unusual LOCATION '{metastore_service.warehouse}/unusual'")
        yield session
        drop_database(session, "unusual")


@pytest.mark.parametrize("type_", UNUSUAL)
def test_keys_find_a_partition_with_an_unusual_name(session, metastore_service, tmp_path, type_):
    name, text = UNUSUAL[type_]
    value = "CAST(id % 20 AS INT)" if type_ == "int" else "DATE'2020-01-01' + CAST(id % 20 AS INT)"
    session.sql(
        f"CREATE TABLE unusual.of_{type_} (id INT) PARTITIONED BY (n {type_}) STORED AS PARQUET"
    )
    session.sql(f"INSERT INTO unusual.of_{type_} SELECT CAST(id AS INT), {value} FROM range(100)")
    session.sql(
        f"CREATE TABLE unusual.keys_{type_} STORED AS PARQUET AS SELECT DISTINCT {value} AS n "
        "FROM range(20)"
    )
    folder = Path(tmp_path, "odd")
    session.range(3).selectExpr("CAST(id AS INT) id").write.parquet(str(folder))
    with thrift_client(metastore_service) as client:
        add_partitions(client, f"unusual.of_{type_}", COLUMNS, [((name,), str(folder), {})])
    session.catalog.refreshTable(f"unusual.of_{type_}")
    sql = (
        f"SELECT f.id FROM unusual.of_{type_} f JOIN unusual.keys_{type_} k ON f.n = k.n "
        f"AND concat(k.n, '') = '{text}'"
    )
    plain = sorted(map(tuple, session.sql(sql).collect()))
    assert len(plain) == 8
    job, file = job_of(sql, show_rows=100), UPath(tmp_path / "descriptor.json")
    result = join(session, job, prune(session, job, file, hand_over=False), file)
    assert sorted(result.rows) == plain
    report = reported(session, job, result)
    (target,) = report.descriptor.targets
    assert (len(target.partitions), target.total) == (2, 21)
    (read,) = (each for each in report.reads if each.table == f"unusual.of_{type_}")
    assert read.partitions == 2
