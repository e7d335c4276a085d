"""Two equal tables of which one has a key index, and another writer of them."""

from __future__ import annotations

from airflow_hive_opt.spark.map_join import branch as branches
from tests.lakes.iceberg.conftest import CATALOG
from tests.lakes.iceberg.indexes import build_index
from tests.lakes.runs import rows_of

DAYS = 30
MODES = ("copy-on-write", "merge-on-read")
MERGE = (
    "MERGE INTO {t} AS t USING lake.kim.changed AS c ON t.id = c.id "
    "WHEN MATCHED AND c.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = c.v "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (c.id, DATE'2030-01-01', c.v)"
)


def with_changed_rows(lake):
    """The session with a table of changed rows, and without it in the end."""
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.kim")
    lake.sql(
        "CREATE TABLE lake.kim.changed USING iceberg AS SELECT * FROM VALUES "
        "(4L, 70L), (34L, -1L), (300L, 71L), (6000L, 73L), (NULL, 72L) AS t(id, v)"
    )
    yield lake
    lake.sql("DROP TABLE lake.kim.changed PURGE")


def fresh(session, root, mode: str = MODES[0]) -> str:
    """Two equal tables: ``ours`` with an index, and ``plain``."""
    properties = ", ".join(
        f"'write.{kind}.mode' = '{mode}'" for kind in ("merge", "update", "delete")
    )
    for name in ("ours", "plain"):
        table = f"lake.kim.{name}"
        session.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        session.sql(
            f"CREATE TABLE {table} USING iceberg PARTITIONED BY (day) "
            f"TBLPROPERTIES ('format-version' = '2', {properties}) AS SELECT id, "
            f"date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) AS day, id % 3 AS v "
            "FROM range(240) UNION ALL SELECT 300L, NULL, 1L"
        )
    build_index(session, root, "lake.kim.ours", "id")
    return "lake.kim.ours"


def of(name: str, sql: str) -> str:
    return sql.replace("{t}", f"lake.kim.{name}").replace("{n}", name)


def content(session, name: str) -> list[tuple]:
    return rows_of(session, f"SELECT id, day, v FROM lake.kim.{name}")


def branches_of(session, table: str = "lake.kim.ours") -> list[tuple]:
    return rows_of(
        session, f"SELECT name, max_reference_age_in_ms FROM {table}.refs WHERE name <> 'main'"
    )


def use_of(found):
    (use,) = found.report.descriptor.index_uses
    return use


def at(monkeypatch, name: str, act, after: bool = False) -> None:
    """Acts once before, or after, a method of the branch."""
    method = getattr(branches.Branch, name)
    done = []

    def acting(self):
        if not after and not done:
            done.append(act())
        found = method(self)
        if after and not done:
            done.append(act())
        return found

    monkeypatch.setattr(branches.Branch, name, acting)


def another_writer(session):
    """A session of another process, as far as Iceberg's caches are concerned."""
    writer = session.newSession()
    warehouse = session.conf.get("spark.sql.catalog.lake.warehouse")
    for name, value in {"": CATALOG, ".type": "hadoop", ".warehouse": warehouse}.items():
        writer.conf.set(f"spark.sql.catalog.same{name}", value)
    return writer
