"""Partitioned tables of any size in a Hive Metastore over PostgreSQL.

    python -m benchmarks.warehouse 1000 10000 100000

Table ``bench.fact_N`` has N partitions by ``ds``, each with one Parquet file of ten rows. Table
``bench.dim_N`` has one row for each partition. Its column ``rank`` holds the numbers 0 to N - 1 in
random order, so ``rank < k`` matches k partitions.

Five INSERTs write the partitions into the metastore's own database: 10,000 partitions took 1.2 s,
while add_partitions in batches of 1,000 took 104 s. The partitions' IDs come from the metastore's
own sequence table, like those of the metastore.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM, signal
from typing import TYPE_CHECKING

from tests.services.metastore import MetastoreService, metastore
from tests.services.postgres import Postgres, postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / ".bench"
DATABASE = "bench"
_MODEL = "org.apache.hadoop.hive.metastore.model"


@dataclass(frozen=True)
class Servers:
    """The benchmarks' servers; ``folder`` keeps the data between runs."""

    folder: Path
    postgres: Postgres
    metastore: MetastoreService


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Runs PostgreSQL and a metastore in the benchmarks' folder until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    signal(SIGTERM, lambda *_: sys.exit(143))  # the servers must end with the benchmark
    with (
        postgres(folder / "postgres") as database,
        # with the JVM's optimizing compiler, unlike in tests
        metastore(folder / "metastore", database, java_options="-Xmx2g") as service,
    ):
        yield Servers(folder, database, service)


def session_conf(uri: str, warehouse: Path) -> dict[str, str]:
    """Spark's settings, the same for all contenders."""
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        # Spark does not count the bytes of Parquet's parallel reads
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.sql.warehouse.dir": str(warehouse),
    }


def build(session: SparkSession, running: Servers, partitions: int) -> float:
    """Creates missing ``fact_N`` and ``dim_N``; returns the seconds for registering partitions."""
    fact, dimension = f"{DATABASE}.fact_{partitions}", f"{DATABASE}.dim_{partitions}"
    session.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    if session.catalog.tableExists(dimension):
        return 0.0
    session.sql(f"DROP TABLE IF EXISTS {fact}")
    days = make_fact(session, fact, partitions)
    folder = Path(_location(session, fact))
    content = one_file(session, folder.with_name("model"))
    for day in days:
        place = folder / f"ds={day}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "part-00000.parquet").write_bytes(content)
    began = time.monotonic()
    register(running.postgres, fact, "ds", f"file:{folder}", days, len(content))
    seconds = time.monotonic() - began
    make_dimension(session, dimension, days)
    return seconds


def register(
    database: Postgres, table: str, column: str, folder: str, values: list[str], size: int
) -> None:
    """Registers partitions ``folder/column=value`` of ``db.table`` in the metastore's database.

    ``folder`` is the URI of the table's folder.

    Each partition has one file with ten rows and ``size`` bytes.
    """
    schema, _, name = table.partition(".")
    with database.connect("metastore") as connection, connection.transaction():
        found = connection.execute(
            'SELECT t."TBL_ID", s."CD_ID", s."INPUT_FORMAT", s."OUTPUT_FORMAT", d."SLIB" '
            'FROM "TBLS" t JOIN "DBS" b USING ("DB_ID") JOIN "SDS" s USING ("SD_ID") '
            'JOIN "SERDES" d USING ("SERDE_ID") WHERE b."NAME" = %s AND t."TBL_NAME" = %s',
            [schema, name],
        ).fetchone()
        assert found is not None, f"{table} is not in the metastore"
        first = {}
        for kind in ("MPartition", "MStorageDescriptor", "MSerDeInfo"):
            sequence = f"{_MODEL}.{kind}"
            connection.execute(
                'INSERT INTO "SEQUENCE_TABLE" VALUES (%s, 1) ON CONFLICT DO NOTHING', [sequence]
            )
            row = connection.execute(
                'UPDATE "SEQUENCE_TABLE" SET "NEXT_VAL" = "NEXT_VAL" + %s '
                'WHERE "SEQUENCE_NAME" = %s RETURNING "NEXT_VAL" - %s',
                [len(values), sequence, len(values)],
            ).fetchone()
            assert row is not None
            first[kind] = row[0]
        numbered = (
            "FROM unnest(%(values)s::text[]) WITH ORDINALITY AS given(value, ordinal)"
            ", LATERAL (SELECT ordinal - 1 AS n) AS numbered"
        )
        known = dict(
            zip(("table", "columns", "reader", "writer", "library"), found, strict=True),
            **first,
            values=values,
            column=column,
            folder=folder,
            now=int(time.time()),
            rows=10,
            bytes=size,
        )
        for statement in (
            'INSERT INTO "SERDES" ("SERDE_ID", "NAME", "SLIB") '
            f"SELECT %(MSerDeInfo)s + n, NULL, %(library)s {numbered}",
            'INSERT INTO "SDS" ("SD_ID", "CD_ID", "INPUT_FORMAT", "IS_COMPRESSED", '
            '"IS_STOREDASSUBDIRECTORIES", "LOCATION", "NUM_BUCKETS", "OUTPUT_FORMAT", "SERDE_ID") '
            "SELECT %(MStorageDescriptor)s + n, %(columns)s, %(reader)s, false, false, "
            "%(folder)s || '/' || %(column)s || '=' || value, -1, %(writer)s, %(MSerDeInfo)s + n "
            f"{numbered}",
            'INSERT INTO "PARTITIONS" ("PART_ID", "CREATE_TIME", "LAST_ACCESS_TIME", "PART_NAME", '
            '"SD_ID", "TBL_ID") SELECT %(MPartition)s + n, %(now)s, 0, '
            f"%(column)s || '=' || value, %(MStorageDescriptor)s + n, %(table)s {numbered}",
            'INSERT INTO "PARTITION_KEY_VALS" ("PART_ID", "PART_KEY_VAL", "INTEGER_IDX") '
            f"SELECT %(MPartition)s + n, value, 0 {numbered}",
            'INSERT INTO "PARTITION_PARAMS" ("PART_ID", "PARAM_KEY", "PARAM_VALUE") '
            "SELECT %(MPartition)s + n, fact.key, fact.text "
            f"{numbered} CROSS JOIN (VALUES ('numFiles', '1'), ('numRows', %(rows)s::text), "
            "('totalSize', %(bytes)s::text)) AS fact (key, text)",
        ):
            connection.execute(statement, known)
    with database.connect("metastore") as connection:
        connection.execute("ANALYZE")


def make_fact(session: SparkSession, table: str, partitions: int) -> list[str]:
    """Creates the table without its partitions; returns their days."""
    columns = "id bigint, item int, amount decimal(10,2)"
    session.sql(f"CREATE TABLE {table} ({columns}, ds string) USING parquet PARTITIONED BY (ds)")
    return [f"d{number:06}" for number in range(partitions)]


def make_dimension(session: SparkSession, table: str, days: list[str]) -> None:
    """Creates the table of the days in one file, with their ranks."""
    ranks = list(range(len(days)))
    random.Random(len(days)).shuffle(ranks)
    rows = session.createDataFrame(list(zip(days, ranks, strict=True)), "ds string, rank int")
    rows.coalesce(1).write.mode("overwrite").saveAsTable(table)


def one_file(session: SparkSession, folder: Path) -> bytes:
    """The file of each partition of ``fact_N``, which Spark writes to ``folder``."""
    rows = session.range(10).selectExpr(
        "id", "cast(id % 7 AS int) AS item", "cast(id + 0.25 AS decimal(10,2)) AS amount"
    )
    rows.coalesce(1).write.mode("overwrite").parquet(f"file:{folder}")
    (file,) = folder.glob("part-*.parquet")
    return file.read_bytes()


def _location(session: SparkSession, table: str) -> str:
    rows = session.sql(f"DESCRIBE FORMATTED {table}").collect()
    (found,) = [row[1] for row in rows if row[0] == "Location"]
    return str(found).removeprefix("file:")


def main() -> None:
    """Builds the tables of the given sizes."""
    from airflow_hive_opt.spark.session.session import spark_session

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("partitions", type=int, nargs="+")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    with servers(chosen.folder) as running:
        conf = session_conf(running.metastore.uri, running.metastore.warehouse)
        with spark_session("build", conf) as session:
            session.sparkContext.setLogLevel("ERROR")
            for size in chosen.partitions:
                began = time.monotonic()
                registering = build(session, running, size)
                print(
                    f"{size:,} partitions: {time.monotonic() - began:.1f} s, of which "
                    f"{registering:.1f} s in the metastore's database",
                    flush=True,
                )


if __name__ == "__main__":
    sys.exit(main())
