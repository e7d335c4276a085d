"""A Delta table of orders by day, whose numbers say nothing of the day, and its key index."""

from __future__ import annotations

from tests.lakes.runs import rows_of

ORDERS, NAME, DAYS = "ki.orders", "spark_catalog.ki.orders", 40
JOIN = f"SELECT o.id, o.v, o.day FROM {ORDERS} o JOIN ki.picked p ON o.id = p.id"
KEYS = "3, 43, 7, 5000"
MAPPED = (
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
    "'delta.minWriterVersion' = '5')"
)


def create_picked(session) -> None:
    """The keys of the orders that statements ask for."""
    session.sql(
        "CREATE TABLE ki.picked USING delta AS SELECT * FROM VALUES (3L, 'k3', 1), "
        "(43L, 'k43', 1), (7L, 'k7', 2), (5000L, 'none', 2), (NULL, NULL, 3) AS t(id, code, kind)"
    )


def create(session, properties: str = "") -> None:
    session.sql(
        f"CREATE TABLE {ORDERS} (id bigint, code string, v int, day date) USING delta "
        f"PARTITIONED BY (day) {properties}"
    )
    add(session, "range(0, 400, 1, 1)")
    session.sql(
        f"INSERT INTO {ORDERS} SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(7, 'k7', 1, NULL), (999, 'k999', 1, NULL)"
    )


def add(session, rows: str) -> None:
    session.sql(
        f"INSERT INTO {ORDERS} SELECT id, concat('k', id), cast(id % 9 AS int), "
        f"date_add(DATE'2024-01-01', cast(id % {DAYS} AS int)) FROM {rows}"
    )


def literal_rows(session, sql: str = JOIN) -> list[tuple]:
    return rows_of(session, f"{sql} AND o.id IN ({KEYS})")


def use_of(found, table: str = NAME):
    (use,) = {use for use in found.report.descriptor.index_uses if use.scan.table == table}
    return use
