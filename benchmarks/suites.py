"""The data and the queries of TPC-DS and TPC-H.

The queries' texts are the standards' with their default substitutions. They come from DuckDB's
extensions (MIT; the wheels contain DuckDB's own signed files). Names in double quotes become names
in backquotes, as Spark writes them; nothing else is changed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUOTED_NAME = re.compile(r'\b(as\s+)"([^"]+)"', re.IGNORECASE)


@dataclass(frozen=True)
class Suite:
    """A published set of tables and queries.

    ``partitioned`` has the partition column of each fact table. ``by_month`` says that its dates
    are set to the first of their month, so that a table has one partition for each month.
    """

    name: str
    title: str
    partitioned: Mapping[str, str]
    by_month: bool = False


TPCDS = Suite(
    "tpcds",
    "TPC-DS",
    {
        "store_sales": "ss_sold_date_sk",
        "store_returns": "sr_returned_date_sk",
        "catalog_sales": "cs_sold_date_sk",
        "catalog_returns": "cr_returned_date_sk",
        "web_sales": "ws_sold_date_sk",
        "web_returns": "wr_returned_date_sk",
        "inventory": "inv_date_sk",
    },
)
TPCH = Suite("tpch", "TPC-H", {"lineitem": "l_shipdate", "orders": "o_orderdate"}, by_month=True)
SUITES = {suite.name: suite for suite in (TPCDS, TPCH)}


def generate(suite: Suite, folder: Path, scale: float) -> Path:
    """Generates the data as Parquet, one file for each table, if it is missing."""
    target = folder / f"{suite.name}-{scale}"
    if not target.exists():
        unfinished = folder / f"{suite.name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [Path(sys.executable).parent / "tpcgen-cli", suite.name, "parquet"]
        subprocess.run(
            [*command, f"--scale-factor={scale}", f"--output-dir={unfinished}"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        unfinished.rename(target)
    return target


def load(session: SparkSession, suite: Suite, data: Path, database: str) -> dict[str, int]:
    """Creates the missing tables; returns the numbers of partitions of the fact tables."""
    from pyspark.sql.functions import trunc

    session.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    for file in sorted(data.glob("*.parquet")):
        name = f"{database}.{file.stem}"
        column = suite.partitioned.get(file.stem)
        if session.catalog.tableExists(name):
            continue
        print(f"loading {name}", flush=True)
        frame = session.read.parquet(str(file))
        if column is None:
            frame.coalesce(1).write.saveAsTable(name)
            continue
        if suite.by_month:
            frame = frame.withColumn(column, trunc(column, "month"))
        frame = frame.repartition(8, column).sortWithinPartitions(column)
        frame.write.partitionBy(column).saveAsTable(name)
    return {
        table: session.sql(f"SHOW PARTITIONS {database}.{table}").count()
        for table in suite.partitioned
    }


def query_texts(suite: Suite) -> dict[int, str]:
    """The queries by number, in Spark's form: without the semicolon at the end."""
    import duckdb

    spec = find_spec(f"duckdb_extension_{suite.name}")
    assert spec is not None and spec.origin is not None
    (extension,) = Path(spec.origin).parent.rglob(f"{suite.name}.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        found = connection.execute(f"SELECT query_nr, query FROM {suite.name}_queries()").fetchall()
    return {
        number: _QUOTED_NAME.sub(r"\1`\2`", text).strip().removesuffix(";").rstrip()
        for number, text in found
    }


def main() -> None:
    """Writes a suite's data and ``queries.json`` into a folder, for environments without either."""
    name, folder, scale = sys.argv[1:]
    data = generate(SUITES[name], Path(folder), float(scale))
    (data / "queries.json").write_text(json.dumps(query_texts(SUITES[name])))


if __name__ == "__main__":
    main()
