"""Joins of Delta tables by a column with a key index: Spark's own rows, from the files of the keys.

What does not depend on the format is tested with Iceberg's tables.
"""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.local_task import lake_scans
from tests.lakes.databases import drop_database
from tests.lakes.delta.indexes import build_index
from tests.lakes.delta.orders import (
    DAYS,
    JOIN,
    NAME,
    ORDERS,
    create,
    create_picked,
    literal_rows,
    use_of,
)
from tests.lakes.iceberg.facts import LARGE
from tests.lakes.runs import rows_of, run


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return UPath(tmp_path_factory.mktemp("indexes"))


@pytest.fixture(scope="module")
def tables(lake, root):
    lake.sql("CREATE DATABASE ki")
    create_picked(lake)
    create(lake)
    build_index(lake, root, NAME, "id")
    yield lake
    drop_database(lake, "ki")


def test_a_join_reads_the_partitions_of_the_files_that_hold_the_keys(
    tables, tmp_path, root, monkeypatch
):
    monkeypatch.setattr(lake_scans, "counted", lambda *_: pytest.fail("the index tells the files"))
    found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, JOIN) == literal_rows(tables)
    assert {row[0] for row in found.rows} == {3, 7, 43}
    use = use_of(found)
    # 3 and 43 have the same day; 7 has a day and NULL
    assert (use.code, use.files, use.unknown, use.total_files) == ("USED", 3, 0, DAYS + 1)
    assert found.files(ORDERS) == 3
    assert f"{ORDERS} VERSION AS OF 2" in found.statement
    (planned,) = found.report.descriptor.planned_files
    assert (planned.partitions, planned.files, planned.total_files) == (3, 3, DAYS + 1)
    assert planned == counted(tables, planned)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT o.id FROM {ORDERS} o WHERE o.id IN (SELECT id FROM ki.picked)",
        f"SELECT o.id FROM ki.picked p LEFT JOIN {ORDERS} o ON o.id = p.id AND o.v > 0",
        f"SELECT o.id, q.id FROM {ORDERS} o JOIN ki.picked p ON o.id = p.id "
        f"JOIN {ORDERS} q ON q.id = p.id AND q.day = o.day",
        f"SELECT o.id, q.id FROM {ORDERS} o JOIN ki.picked p ON o.id = p.id "
        f"JOIN (SELECT * FROM {ORDERS} WHERE v = 1) q ON q.day = o.day",
        f"WITH x AS (SELECT * FROM {ORDERS}) SELECT a.id, b.v FROM x a, x b, ki.picked p "
        "WHERE a.id = p.id AND b.id = p.id AND p.kind = 1",
        f"SELECT o.id FROM {ORDERS} o JOIN ki.picked p ON o.id = p.id AND p.id > 4000",
        f"SELECT count(*) FROM {ORDERS} o JOIN ki.picked p ON o.id = p.id "
        f"UNION ALL SELECT count(*) FROM {ORDERS}",
    ],
)
def test_statements_have_plain_sparks_rows(tables, tmp_path, root, sql):
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql)
    assert "USED" in {use.code for use in found.report.descriptor.index_uses}
    assert found.statement.count("VERSION AS OF") == sql.count(ORDERS)


def test_a_table_named_by_its_path_uses_its_index(tables, tmp_path, root):
    path = tables.sql(f"DESCRIBE DETAIL {ORDERS}").head()["location"].removeprefix("file:")
    sql = JOIN.replace(f"{ORDERS} o", f"delta.`{path}` o")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql) == literal_rows(tables, sql)
    (use,) = found.report.descriptor.index_uses
    assert (use.code, use.files) == ("USED", 3)


@pytest.mark.parametrize("write", ["INSERT INTO", "INSERT OVERWRITE"])
def test_rows_that_are_written_are_plain_sparks(tables, tmp_path, root, write):
    for name in ("found", "plain_found"):
        tables.sql(f"CREATE OR REPLACE TABLE ki.{name} (id bigint, v int, day date) USING delta")
    found = run(tables, f"{write} ki.found {JOIN}", tmp_path, index_path=str(root))
    tables.sql(f"{write} ki.plain_found {JOIN}")
    contents = rows_of(tables, "SELECT * FROM ki.found")
    assert contents == rows_of(tables, "SELECT * FROM ki.plain_found") == literal_rows(tables) != []
    (planned,) = found.report.descriptor.planned_files
    assert (use_of(found).code, planned.files) == ("USED", 3)


def test_the_source_of_a_merge_uses_its_index(tables, tmp_path, root):
    """The statement changes another table."""
    for name in ("sums", "plain_sums"):
        tables.sql(f"CREATE TABLE ki.{name} (id bigint, v int) USING delta")
        tables.sql(f"INSERT INTO ki.{name} VALUES (3, 100), (8, 100)")
    merge = (
        f"MERGE INTO ki.{{name}} t USING (SELECT o.id, max(o.v) v FROM {ORDERS} o JOIN ki.picked p "
        "ON o.id = p.id GROUP BY o.id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    found = run(tables, merge.format(name="sums"), tmp_path, index_path=str(root))
    tables.sql(merge.format(name="plain_sums"))
    contents = rows_of(tables, "SELECT * FROM ki.sums")
    assert contents == rows_of(tables, "SELECT * FROM ki.plain_sums")
    assert len(contents) == 4
    assert use_of(found).code == "USED"


def test_keys_of_one_large_table_ask_the_index_of_another(tables, tmp_path, root):
    """The orders of one day, and their returns, which are in other months."""
    tables.sql(
        "CREATE TABLE ki.returns USING delta PARTITIONED BY (month) AS SELECT id AS order_id, "
        "cast(id % 37 AS int) AS month, id * 2 AS amount FROM range(0, 400, 1, 1)"
    )
    build_index(tables, root, "spark_catalog.ki.returns", "order_id")
    tables.sql("CREATE TABLE ki.days USING delta AS SELECT DATE'2024-01-04' AS day, 'x' AS kind")
    sql = (
        f"SELECT o.id, r.amount FROM {ORDERS} o JOIN ki.days d ON o.day = d.day AND d.kind = 'x' "
        "JOIN ki.returns r ON r.order_id = o.id"
    )
    found = run(tables, sql, tmp_path, settings=LARGE, index_path=str(root))
    assert found.rows == rows_of(tables, sql)
    assert len(found.rows) == 10
    use = use_of(found, "spark_catalog.ki.returns")
    assert (use.code, use.hop.keys, found.files("ki.returns")) == ("USED", 10, 10)
    (held,) = use.hop.tables
    assert (held.table, held.snapshot) == (NAME, "2")
    assert held.table_id == tables.sql(f"DESCRIBE DETAIL {ORDERS}").head()["id"]
