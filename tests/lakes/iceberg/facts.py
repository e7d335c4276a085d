"""Three large tables with key indexes, and small ones: returns of sales, and claims of carts."""

from __future__ import annotations

from airflow_hive_opt.statement.settings import CORRELATION, SMALL_TABLE_FILESIZE, Settings
from tests.lakes.iceberg.indexes import build_index

SPACE, DAYS = "lake.hops", 40
SALES, RETURNS, CLAIMS = (f"{SPACE}.{name}" for name in ("sales", "returns", "claims"))
INDEXED = ((SALES, "ticket"), (SALES, "cart"), (RETURNS, "ticket"), (CLAIMS, "cart"))
# The tables of facts have more bytes than a small table may have, the others fewer.
LARGE = Settings.of({CORRELATION: "false", SMALL_TABLE_FILESIZE: "10000"})
NARROWED = (
    f"FROM {SALES} s JOIN {RETURNS} r ON s.ticket = r.ticket AND s.item = r.item "
    f"JOIN {SPACE}.days d ON r.day = d.day"
)
JOIN = f"SELECT s.ticket, s.v, r.v, r.day {NARROWED} WHERE d.week = 3"


def day(number: str) -> str:
    """The SQL of a day by its number, from 0 on."""
    return f"date_add(DATE'2024-01-01', cast({number} % {DAYS} AS int))"


def create_facts(session, root) -> None:
    """A sale has a ticket and a cart. Its day says nothing about that of its return or claim.

    Tickets of ten in a row come back on the same day. Some tickets are NULL, and some come twice.
    """
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {SPACE}")
    columns = {
        SALES: "ticket bigint, cart bigint, item int, v int, day date",
        RETURNS: "ticket bigint, item int, v int, day date",
        CLAIMS: "cart bigint, v int, day date",
    }
    for name, listed in columns.items():
        session.sql(f"DROP TABLE IF EXISTS {name} PURGE")
        session.sql(
            f"CREATE TABLE {name} ({listed}) USING iceberg PARTITIONED BY (day) "
            "TBLPROPERTIES ('format-version' = '2')"
        )
    session.sql(
        f"INSERT INTO {SALES} SELECT id, id DIV 2, cast(id % 5 AS int), cast(id % 9 AS int), "
        f"{day('id')} FROM range(400) UNION ALL "
        f"SELECT NULL, NULL, 1, 1, {day('id')} FROM range(0, 40, 10)"
    )
    session.sql(
        f"INSERT INTO {RETURNS} SELECT id, cast(id % 5 AS int), cast(id % 7 AS int), "
        f"{day('id DIV 10')} FROM range(0, 400, 4) UNION ALL "
        f"SELECT NULL, 1, 1, {day('id')} FROM range(40) UNION ALL "
        f"SELECT id, cast(id % 5 AS int), 8, {day('id DIV 10')} FROM range(0, 400, 8)"
    )
    session.sql(
        f"INSERT INTO {CLAIMS} SELECT id, cast(id % 3 AS int), {day('id * 7')} FROM range(200)"
    )
    small = {
        "days": f"SELECT {day('id')} AS day, cast(id DIV 2 AS int) AS week FROM range({DAYS})",
        "shops": "SELECT cast(id AS int) AS v, concat('shop ', id % 3) AS name FROM range(9)",
    }
    for name, query in small.items():
        session.sql(f"DROP TABLE IF EXISTS {SPACE}.{name} PURGE")
        session.sql(f"CREATE TABLE {SPACE}.{name} USING iceberg AS {query}")
    for table, column in INDEXED:
        build_index(session, root, table, column)


def drop_facts(session) -> None:
    """Drops the tables."""
    for name in ("sales", "returns", "claims", "days", "shops"):
        session.sql(f"DROP TABLE {SPACE}.{name} PURGE")
