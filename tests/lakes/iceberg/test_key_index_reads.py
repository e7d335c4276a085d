"""Joins by a column with a key index: the rows are Spark's own, from the files of the keys."""

from __future__ import annotations

import json
import logging

import pytest
from upath import UPath

from airflow_hive_opt.key_index.manifest import folder_of
from tests.lakes.databases import drop_database
from tests.lakes.iceberg.indexes import build_index
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import needs_jvm

pytestmark = needs_jvm
ORDERS, DAYS = "lake.ki.orders", 40
JOIN = f"SELECT o.id, o.v, o.day FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.id"


@pytest.fixture(scope="module")
def session(lake):
    lake.sql("CREATE NAMESPACE lake.ki")
    yield lake
    lake.sql("USE spark_catalog.default")


@pytest.fixture
def root(tmp_path):
    return UPath(tmp_path / "indexes")


@pytest.fixture
def tables(session, root):
    """Orders by day: an order's number says nothing of its day. Some days are NULL."""
    session.sql(
        f"CREATE TABLE {ORDERS} (id bigint, code string, v int, day date) USING iceberg "
        "PARTITIONED BY (day) TBLPROPERTIES ('format-version' = '2')"
    )
    add(session, "range(400)")
    session.sql(f"INSERT INTO {ORDERS} VALUES (7, 'k7', 1, NULL), (999, 'k999', 1, NULL)")
    session.sql(
        "CREATE TABLE lake.ki.picked USING iceberg AS SELECT * FROM VALUES "
        "(3L, 3, 'k3', 1), (43L, 43, 'k43', 1), (7L, 7, 'k7', 2), (5000L, 5000, 'none', 2), "
        "(NULL, NULL, NULL, 3) AS t(id, small, code, kind)"
    )
    build_index(session, root, ORDERS, "id")
    yield session
    for name in ("orders", "picked"):
        session.sql(f"DROP TABLE lake.ki.{name} PURGE")


def add(session, rows: str) -> None:
    session.sql(
        f"INSERT INTO {ORDERS} SELECT id, concat('k', id), cast(id % 9 AS int), "
        f"date_add(DATE'2024-01-01', cast(id % {DAYS} AS int)) FROM {rows}"
    )


def literal_rows(session, sql: str, keys: str) -> list[tuple]:
    return rows_of(session, f"{sql} AND o.id IN ({keys})")


def use_of(found):
    (use,) = found.report.descriptor.index_uses
    return use


def test_a_join_reads_the_partitions_of_the_files_that_hold_the_keys(tables, tmp_path, root):
    found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, JOIN)
    assert found.rows == literal_rows(tables, JOIN, "3, 43, 7, 5000")
    assert (3, 3, 7) == tuple(sorted({row[0] for row in found.rows}))[:1] * 2 + (7,)
    use = use_of(found)
    # 3 and 43 have the same day; 7 has a day and NULL
    assert (use.code, use.files, use.unknown, use.total_files) == ("USED", 3, 0, DAYS + 1)
    assert found.files(ORDERS) == 3
    assert "VERSION AS OF" in found.statement
    (planned,) = found.report.descriptor.planned_files
    assert (planned.files, planned.total_files) == (3, DAYS + 1)
