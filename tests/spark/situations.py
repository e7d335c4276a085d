"""What users write, and what becomes of it: one line a situation.

``sales`` has 20 days of 2020 and the NULL partition, ``hours`` days 0 to 4 with hours 0 to 3.
``docs/how-it-works/what-prunes.md`` is made of this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Situation:
    """``outcome`` is the path or, for a scan that is left whole, the reason."""

    group: str
    name: str
    sql: str
    outcome: str
    kept: int
    alias: str

    @property
    def total(self) -> int:
        return 20 if self.alias == "h" else 21


def read() -> list[Situation]:
    """The situations of ``situations.sql``."""
    found, group, head = [], "", ""
    for line in Path(__file__).with_name("situations.sql").read_text().splitlines():
        if line.startswith("# "):
            group = line[2:]
        elif line.startswith("-- "):
            head = line[3:]
        elif line:
            name, outcome, kept, alias = head.rsplit(" | ", 3)
            found.append(Situation(group, name, line, outcome, int(kept), alias))
    return found


SITUATIONS = read()


def first_of_each() -> list[Situation]:
    """The first situation of each group and outcome."""
    found: dict[tuple[str, str], Situation] = {}
    for each in SITUATIONS:
        found.setdefault((each.group, each.outcome), each)
    return list(found.values())


def setup(spark) -> None:
    """The tables."""
    day = "date_format(date_add(DATE'2020-01-01', CAST(id AS INT)), 'yyyy-MM-dd')"
    for statement in [
        "CREATE TABLE sales (id INT, item INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
        f"INSERT INTO sales SELECT n, n % 5, CASE WHEN id = 20 THEN NULL ELSE {day} END "
        "FROM (SELECT CAST(id AS INT) AS n, id % 21 AS id FROM range(84))",
        "CREATE TABLE returns (id INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
        f"INSERT INTO returns SELECT id, {day} FROM range(10)",
        "CREATE TABLE hours (id INT) PARTITIONED BY (ds INT, hr INT) STORED AS PARQUET",
        "INSERT INTO hours SELECT id, CAST(id DIV 4 AS INT), CAST(id % 4 AS INT) FROM range(20)",
        "CREATE TABLE days STORED AS PARQUET AS SELECT "
        f"{day} AS ds, date_format(date_add(DATE'2020-01-01', CAST(id AS INT)), 'dd') AS dd, "
        "CAST(id DIV 7 AS INT) AS week, id % 2 = 0 AS open FROM range(20) "
        "UNION ALL SELECT NULL, NULL, 1, false",
        "CREATE TABLE weeks STORED AS PARQUET AS SELECT * FROM VALUES (0, 'zero'), (1, 'one') "
        "AS w(week, name)",
        "CREATE TABLE three STORED AS PARQUET AS SELECT * FROM VALUES ('2020-01-02', 'a'), "
        "('2020-01-05', NULL), ('2020-01-11', 'c'), (NULL, 'd'), ('never', NULL) AS t(ds, note)",
        "CREATE TABLE dates STORED AS PARQUET AS SELECT * FROM VALUES (DATE'2020-01-03'), "
        "(DATE'2020-01-05'), (DATE'2021-01-01') AS t(day)",
        "CREATE TABLE spans STORED AS PARQUET AS SELECT * FROM VALUES "
        "('2020-01-05', '2020-01-08') AS t(low, high)",
        "CREATE TABLE slots STORED AS PARQUET AS SELECT * FROM VALUES (0, 1), (3, 2), (3, 3), "
        "(9, 9) AS t(ds, hr)",
        "CREATE TABLE numbers STORED AS PARQUET AS SELECT CAST(id AS INT) AS n FROM range(13)",
        f"CREATE TABLE huge STORED AS PARQUET AS SELECT {day} AS ds FROM range(5)",
        "CREATE VIEW first_week AS SELECT ds FROM days WHERE week = 1",
        "CREATE VIEW sales_view AS SELECT ds AS day, item FROM sales",
    ]:
        spark.sql(statement)
