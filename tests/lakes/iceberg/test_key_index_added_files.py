"""Files without field IDs behind a key index: the table's name mapping says what they hold."""

from __future__ import annotations

import json

import pytest
from upath import UPath

from tests.lakes.iceberg.indexes import build_index
from tests.lakes.runs import rows_of, run
from tests.lakes.session import needs_jvm

pytestmark = needs_jvm
MERGE = (
    "MERGE INTO {t} t USING lake.kia.changed c ON t.id = c.id WHEN MATCHED THEN UPDATE SET v = -1 "
    "WHEN NOT MATCHED THEN INSERT ({columns}) VALUES (c.id, 9, DATE'2030-01-01', NULL)"
)


@pytest.fixture(scope="module")
def session(lake):
    lake.sql("CREATE NAMESPACE lake.kia")
    lake.sql("CREATE TABLE lake.kia.changed USING iceberg AS SELECT explode(array(4L, 34L)) AS id")
    yield lake
    for name in ("changed", "ours", "plain"):
        lake.sql(f"DROP TABLE IF EXISTS lake.kia.{name} PURGE")


def both(session, sql: str) -> None:
    for name in ("ours", "plain"):
        session.sql(sql.replace("{t}", f"lake.kia.{name}"))


def corrected(session):
    """A property says which column of the files is the ID."""
    names = [["id", "order_id"], ["v"], ["day"], ["x"]]
    mapping = json.dumps([{"field-id": at, "names": own} for at, own in enumerate(names, 1)])
    both(
        session,
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ('schema.name-mapping.default' = '{mapping}')",
    )


def renamed(session):
    """Iceberg moves the names of columns in the mapping."""
    both(session, "ALTER TABLE {t} RENAME COLUMN id TO old_id")
    both(session, "ALTER TABLE {t} RENAME COLUMN x TO id")
    both(session, "INSERT INTO {t} VALUES (NULL, 1, DATE'2024-01-01', 77)")


@pytest.mark.parametrize(
    ("change", "in_files", "indexed"), [(corrected, "order_id", "id"), (renamed, "id", "x")]
)
def test_a_mapping_that_changes_behind_the_index(session, tmp_path, change, in_files, indexed):
    root = UPath(tmp_path / "indexes")
    session.sql(
        f"SELECT id AS {in_files}, id % 3 AS v, "
        "date_add(DATE'2024-01-01', CAST(id % 30 AS int)) AS day FROM range(60)"
    ).write.partitionBy("day").parquet(str(tmp_path / "old"))
    for name in ("ours", "plain"):
        session.sql(f"DROP TABLE IF EXISTS lake.kia.{name}")
        session.sql(
            f"CREATE TABLE lake.kia.{name} (id bigint, v bigint, day date, x bigint) USING iceberg "
            "PARTITIONED BY (day)"
        )
        session.sql(
            f"CALL lake.system.add_files(table => 'kia.{name}', "
            f"source_table => '`parquet`.`{tmp_path}/old`')"
        )
    build_index(session, root, "lake.kia.ours", indexed)
    change(session)
    select = "SELECT t.v, t.day FROM {t} t JOIN lake.kia.changed c ON t.id = c.id"
    found = run(session, select.format(t="lake.kia.ours"), tmp_path, index_path=str(root))
    assert found.rows == rows_of(session, select.format(t="lake.kia.plain"))
    assert len(found.rows) == 2
    columns = "id, v, day, x" if indexed == "id" else "id, v, day, old_id"
    run(
        session,
        MERGE.format(t="lake.kia.ours", columns=columns),
        tmp_path,
        index_path=str(root),
    )
    session.sql(MERGE.format(t="lake.kia.plain", columns=columns))
    given, plain = (rows_of(session, f"SELECT * FROM lake.kia.{n}") for n in ("ours", "plain"))
    assert given == plain
