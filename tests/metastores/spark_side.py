"""What Spark sees of tables in a metastore, for a process without Spark.

python -m tests.metastores.spark_side FOLDER OUTPUT SPARK_SETTING=VALUE ...

It makes the tables of ``spark_tables.sql`` and of the situations, and pickles what Spark's catalog
says of them, and the plans that Spark's catalog leads to.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.session.session import embedded_conf, spark_session
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.errors import PlanError
from tests.services.lake_entries import add_entry
from tests.spark.situations import SITUATIONS, setup

DATABASE = "facts"
_TABLES = Path(__file__).with_name("spark_tables.sql")
MORE = Path(__file__).with_name("more_statements.sql")


def statements(path: Path, **values: object) -> list[str]:
    """The statements of a file, which end with a semicolon at the end of a line."""
    lines = (line for line in path.read_text().splitlines() if not line.startswith("--"))
    text = "\n".join(lines)
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return [each.strip() for each in text.split(";\n") if each.strip(" ;\n")]


def planned(sql: str, catalog: Catalog) -> list[Any]:
    """The decisions with their key sources and conditions, or the error."""
    try:
        found = plan(sql, catalog)
    except PlanError as error:
        return [str(error)]
    return [
        found.passed_through,
        [
            (
                *(each.scan, each.table.name, str(each.reason), str(each.path), each.columns),
                [repr(source) for source in each.sources],
                [repr(alternative.conditions) for alternative in each.alternatives],
            )
            for each in found.decisions
        ],
        [(each.column, repr(each.source)) for each in found.predicates],
    ]


def _main(folder: str, output: str, *pairs: str) -> None:
    conf = embedded_conf(Path(folder), "local[2]") | dict(pair.split("=", 1) for pair in pairs)
    with spark_session("facts", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        session.sql(f"CREATE DATABASE {DATABASE}")
        session.sql(f"USE {DATABASE}")
        for statement in statements(_TABLES, folder=folder):
            session.sql(statement)
        for provider in ("delta", "hudi", "iceberg"):
            add_entry(session, f"{DATABASE}.by_day", f"{DATABASE}.in_{provider}", provider)
        names = [row.tableName for row in session.sql("SHOW TABLES").collect()]
        catalog = SparkCatalog(session)
        tables = {}
        for name in names:
            table = catalog.table(f"{DATABASE}.{name}")
            tables[name] = None if table is None else catalog.described(table, ())
        found = {
            "tables": tables,
            "default": catalog.default_location(),
            "more": [planned(sql, SparkCatalog(session)) for sql in statements(MORE)],
        }
        session.sql("CREATE DATABASE situations")
        session.sql("USE situations")
        setup(session)
        found["situations"] = [
            planned(situation.sql, SparkCatalog(session)) for situation in SITUATIONS
        ]
        Path(output).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    _main(*sys.argv[1:])
