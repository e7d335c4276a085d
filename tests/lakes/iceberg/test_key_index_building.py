"""Key indexes of tables that Spark writes: they give the files in which Spark finds a key."""

from __future__ import annotations

from datetime import date

import pytest
from upath import UPath

pytest.importorskip("pyiceberg")  # environments of other versions do not have it

from airflow_hive_opt.key_index.building import build
from airflow_hive_opt.key_index.checker import problems_of_index
from airflow_hive_opt.key_index.iceberg import IcebergColumn
from airflow_hive_opt.key_index.lookup import files_holding
from airflow_hive_opt.key_index.manifest import read_index
from airflow_hive_opt.worker.lakes.iceberg import in_folder

T = "lake.indexed.t"
KEYS = {
    "small": [7, -1, 400],
    "id": [2**40 + 7, 2**40, 3],
    "code": ["é7", "", "x"],
    "bought": [date(2024, 1, 8), date(1500, 1, 1)],
}


@pytest.fixture
def table(lake):
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.indexed")
    lake.sql(
        f"CREATE TABLE {T} USING iceberg PARTITIONED BY (p) TBLPROPERTIES "
        "('write.distribution-mode' = 'hash') AS "
        "SELECT id + 1099511627776 AS id, CAST(id % 97 - 1 AS INT) AS small, "
        "if(id = 5, '', concat('é', id % 150)) AS code, "
        "date_add(DATE'2024-01-01', CAST(id % 80 AS INT)) AS bought, CAST(id % 9 AS INT) AS p "
        "FROM range(300)"
    )
    yield lake
    lake.sql(f"DROP TABLE {T} PURGE")


def loaded(session):
    folder = f"{session.conf.get('spark.sql.catalog.lake.warehouse')}/indexed/t"
    return in_folder(T, folder, UPath).loaded


def agrees(session, root, exactly=True):
    """Compares the index of each column with the files in which Spark finds the keys."""
    for column, keys in KEYS.items():
        of = IcebergColumn(loaded(session), T, column)
        assert build(root, of).left_out == {}
        assert problems_of_index(loaded(session), column, root) == []
        index = read_index(root, of.table_uuid, of.field_id)
        files = {
            row[0]
            for row in session.sql(f"SELECT file_path FROM {T}.files WHERE content=0").collect()
        }
        for key in keys:
            literal = f"DATE'{key}'" if isinstance(key, date) else repr(key)
            sql = f"SELECT DISTINCT _file FROM {T} WHERE {column} = {literal}"
            expected = {row[0] for row in session.sql(sql).collect()}
            found = files_holding(root, index, [key])
            assert files <= found.covered
            given = found.holding & files
            assert given == expected if exactly else given >= expected


def test_columns_of_each_type(table, tmp_path):
    agrees(table, UPath(tmp_path))


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changed_rows(table, tmp_path, mode):
    root = UPath(tmp_path)
    agrees(table, root)
    for kind in ("merge", "update", "delete"):
        table.sql(f"ALTER TABLE {T} SET TBLPROPERTIES ('write.{kind}.mode' = '{mode}')")
    table.sql(f"UPDATE {T} SET small = 400, code = 'x' WHERE small = 7")
    table.sql(f"DELETE FROM {T} WHERE id = {2**40}")
    table.sql(
        f"MERGE INTO {T} USING (SELECT 3L AS id UNION ALL SELECT {2**40 + 9}) s ON {T}.id = s.id "
        "WHEN MATCHED THEN UPDATE SET bought = DATE'1500-01-01' "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 1)"
    )
    agrees(table, root, exactly=mode == "copy-on-write")
    table.sql("CALL lake.system.rewrite_data_files('indexed.t')")
    table.sql(f"ALTER TABLE {T} ALTER COLUMN small TYPE BIGINT")
    table.sql(f"INSERT INTO {T} VALUES (3, 400, 'x', DATE'1500-01-01', 2)")
    agrees(table, root, exactly=mode == "copy-on-write")
