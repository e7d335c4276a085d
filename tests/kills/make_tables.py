"""Makes the suite's tables, and what plain Spark leaves in them.

python -m tests.kills.make_tables SPARK_SETTING=VALUE ...
"""

from __future__ import annotations

import sys

from airflow_hive_opt.spark.session.session import spark_session
from tests.faults.tables import JOIN, SOURCES

TEMPLATE = "hive"
VERBS = ("OVERWRITE", "INTO")


def statement(verb: str, table: str, milliseconds: int = 0) -> str:
    """A pruned join into one partition; each of the six rows takes so long to write."""
    item = "s.item"
    if milliseconds:
        item = f"IF(java_method('java.lang.Thread', 'sleep', {milliseconds}L) = 'x', -1, s.item)"
    return (
        f"INSERT {verb} TABLE faults.{table} PARTITION (a = 'x', b = 1) "
        f"SELECT {item} AS item FROM {JOIN}"
    )


def plain_table(verb: str) -> str:
    """The name of the table in which plain Spark has run the statement."""
    return f"plain_{verb.lower()}"


def main(*pairs: str) -> None:
    with spark_session("make tables", dict(pair.split("=", 1) for pair in pairs)) as spark:
        for sql in SOURCES:
            spark.sql(sql)
        for verb in VERBS:
            table = f"faults.{plain_table(verb)}"
            spark.sql(f"CREATE TABLE {table} LIKE faults.{TEMPLATE}")
            spark.sql(f"INSERT INTO {table} SELECT * FROM faults.{TEMPLATE}")
            spark.sql(statement(verb, plain_table(verb)))


if __name__ == "__main__":
    main(*sys.argv[1:])
