"""What Spark sees of tables in a metastore, for a process without Spark.

python -m tests.metastores.spark_side FOLDER OUTPUT SPARK_SETTING=VALUE ...

It makes the tables of ``spark_tables.sql``, of the situations and of the rules' cases, and pickles
what Spark's catalog says of them, and the plans that Spark's catalog leads to.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.session import spark_session
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.example_catalog import CATALOG
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import Settings
from tests.metastores import hive_made
from tests.rules import cases
from tests.services.lake_entries import add_entry
from tests.spark.situations import SITUATIONS, setup

_TABLES = Path(__file__).with_name("spark_tables.sql")
_SMALLER = "SET hive.mapjoin.smalltable.filesize=100;\n"
_STATEMENTS = (
    "SELECT 1 FROM hive_orc h JOIN own_csv c ON h.ds = c.name WHERE c.id = 1",
    "SELECT 1 FROM view_of_one v JOIN as_selected a ON v.day = a.day",
    "SELECT 1 FROM view_of_a_view v JOIN named_view n ON v.day = n.second WHERE n.first = 1",
    "SELECT 1 FROM own_orc o JOIN view_of_one v ON o.ds = v.day",
    "SELECT 1 FROM hive_orc h JOIN empty_text t ON h.ds = t.name",
    "SELECT 1 FROM hive_orc h JOIN analyzed_empty t ON h.n = t.id",
    "SELECT 1 FROM hive_text h JOIN plain_text t ON h.ds = t.name",
    "SELECT 1 FROM projected p JOIN by_day b ON p.day = b.day",
    "SELECT 1 FROM unmanaged p JOIN compensating b ON p.day = b.name",
    "SELECT 1 FROM hive_orc h JOIN collated c ON h.ds = c.name",
    "SELECT 1 FROM keys_of_all_types k JOIN hive_parquet p ON k.a = p.id AND k.c = p.day",
    "SELECT 1 FROM keys_of_all_types k JOIN own_parquet p ON k.d = p.local AND k.g = p.code",
    "SELECT 1 FROM spark_catalog.facts.own_orc o JOIN facts.as_selected a ON o.ds = a.day",
    "SELECT 1 FROM nested n JOIN hive_csv c ON n.p = c.id",
    "SELECT 1 FROM own_orc o JOIN missing m ON o.ds = m.ds",
    "SELECT 1 FROM own_orc o WHERE o.ds IN (SELECT max(day) FROM view_of_one)",
    "INSERT INTO own_orc SELECT o.id, o.v, o.ds FROM own_orc o JOIN by_day b ON o.ds = b.day",
)


def statements() -> Iterator[tuple[str, str]]:
    """Pairs of a database and a statement to plan in it."""
    yield from (("facts", sql) for sql in _STATEMENTS)
    for situation in SITUATIONS:
        setting = _SMALLER if " huge " in situation.sql else ""
        yield "situations", setting + situation.sql
    for name, path in cases.files().items():
        if name.startswith("pruning/"):
            found = (case.statement for case in cases.read(path)[1])
            yield from (("example", sql) for sql in found if "lake." not in sql)


def planned(script: str, catalog: Catalog) -> list[Any]:
    """The decisions with their key sources and conditions, or the error."""
    settings, sql = split_settings(script)
    try:
        found = plan(sql, catalog, Settings.of(settings))
    except PlanError as error:
        return [str(error)]
    decisions = [
        [
            *(each.scan, each.table.name, str(each.reason), str(each.path), each.columns),
            [
                (list(map(_told, alternative.sources)), alternative.conditions)
                for alternative in each.alternatives
            ],
        ]
        for each in found.decisions
    ]
    return [found.passed_through, decisions, [each.column for each in found.predicates]]


def _told(source: KeySource) -> list[Any]:
    names = [(view, table.name) for view, table in source.skeletons]
    parts = (source.sql, source.conditions, source.partition_columns, source.asked)
    return [source.name, *parts, source.scan, source.layers, source.hashable, names]


def _main(folder: str, output: str, *pairs: str) -> None:
    conf = embedded_conf(Path(folder), "local[2]") | dict(pair.split("=", 1) for pair in pairs)
    with spark_session("facts", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        _make_tables(session, folder)
        tables = _tables(session, "facts")
        plans = []
        for database, sql in statements():
            session.sql(f"USE {database}")
            plans.append(planned(sql, SparkCatalog(session)))
        found = {
            "tables": tables,
            "hive_made": _tables(session, hive_made.DATABASE),
            "default": SparkCatalog(session).default_location(),
            "plans": plans,
        }
        Path(output).write_bytes(pickle.dumps(found))


def _tables(session: Any, database: str) -> dict[str, Table | None]:
    catalog = SparkCatalog(session)
    found = {}
    for row in session.sql(f"SHOW TABLES IN {database}").collect():
        table = catalog.table(f"{database}.{row.tableName}")
        found[row.tableName] = None if table is None else catalog.described(table, ())
    return found


def _make_tables(session: Any, folder: str) -> None:
    session.sql("CREATE DATABASE situations")
    session.sql("USE situations")
    setup(session)
    session.sql("CREATE DATABASE example")
    session.sql("USE example")
    for table in CATALOG.tables.values():
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        keys = ", ".join(f"{column.name} {column.type}" for column in table.partition_columns)
        partitioned = f" PARTITIONED BY ({keys})" if keys else ""
        session.sql(f"CREATE TABLE {table.short_name} ({columns}){partitioned} STORED AS PARQUET")
    session.sql("CREATE DATABASE facts")
    session.sql("USE facts")
    lines = (line for line in _TABLES.read_text().splitlines() if not line.startswith("--"))
    for line in lines:
        session.sql(line.rstrip(";").replace("{folder}", folder))
    wide = ", ".join(f"Column_number_{number} STRING" for number in range(150))
    session.sql(f"CREATE TABLE wide ({wide}) USING parquet PARTITIONED BY (Column_number_7)")
    for provider in ("delta", "hudi", "iceberg"):
        add_entry(session, "facts.analyzed_partitions", f"facts.in_{provider}", provider)


if __name__ == "__main__":
    _main(*sys.argv[1:])
