"""Runs star queries of TPC-DS, unmodified, with the operator's functions and with plain Spark.

    python -m benchmarks.tpcds --scale 1 --queries 3 7 19 --repeats 3

The fact tables are partitioned by their date key. The queries' texts are the standard's with its
default substitutions. They come from DuckDB's tpcds extension (MIT; the wheel contains DuckDB's own
signed file). Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import slow_listing
from benchmarks.contenders import OURS, SPARK, SWITCHED, TUNED, Rows, Statement, cold_run
from benchmarks.measure import Cost, Machine, Meter, noise, quiet_session
from benchmarks.report import RESULTS, added, write_tpcds
from benchmarks.warehouse import FOLDER, servers, session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENDERS = (SPARK, TUNED, SWITCHED, OURS)
# Queries where pruning at run time is known to help, and more stars over all three channels.
QUERIES = (
    *(3, 7, 12, 19, 20, 25, 26, 27, 29, 33, 34, 36, 42, 43, 46, 52, 53, 55, 56, 58, 60, 61, 63),
    *(65, 68, 73, 79, 83, 89, 98),
)
PARTITIONED = {
    "store_sales": "ss_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "catalog_returns": "cr_returned_date_sk",
    "web_sales": "ws_sold_date_sk",
    "web_returns": "wr_returned_date_sk",
    "inventory": "inv_date_sk",
}
_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Pruned:
    """What our run kept of the pruned scans, and why other scans were not pruned."""

    kept: int
    total: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One measured run; ``pruned`` is set for our runs only."""

    query: int
    contender: str
    cost: Cost
    noise: float
    pruned: Pruned | None = None


def main() -> None:
    """Runs the chosen queries and writes the results; exits 1 if rows differ."""
    chosen = _arguments()
    data = generate(chosen.folder, chosen.scale)
    texts = query_texts()
    with servers(chosen.folder) as running:
        conf = {
            **session_conf(running.metastore.uri, running.metastore.warehouse),
            **slow_listing.conf(running.folder / "slow_listing"),
        }
        database = f"tpcds_{str(chosen.scale).replace('.', '_')}"
        with quiet_session("tpcds", conf) as session:
            load(session, data, database)
            session.sql(f"USE {database}")
            meter = Meter(session)
            runs: list[Run] = []
            differing = []
            for query in chosen.queries:
                answers: dict[str, Rows] = {}
                runs += _query(session, meter, query, texts[query], chosen, answers)
                if not _same(session, texts[query], answers):
                    differing.append(query)
                    print(f"q{query:02}: rows DIFFER", flush=True)
    records = [asdict(run) for run in runs]
    if not records:
        sys.exit("nothing was measured: --repeats is 0")
    file = chosen.results / "tpcds.json"
    if chosen.add and file.exists():
        before = json.loads(file.read_text())["differing"]
        differing += [query for query in before if query not in chosen.queries]
        records = added(file, records)
    write_tpcds(records, differing, chosen.scale, asdict(Machine()), chosen.results)
    sys.exit(1 if differing else 0)


def _query(
    session: SparkSession,
    meter: Meter,
    query: int,
    sql: str,
    chosen: argparse.Namespace,
    answers: dict[str, Rows],
) -> Iterator[Run]:
    tables = tuple(name for name in PARTITIONED if re.search(rf"\b{name}\b", sql))
    statement = Statement(sql, sql, tables)
    too_slow: set[str] = set()
    for turn in range(chosen.repeats + 1):
        for at in range(len(chosen.contenders)):
            contender = chosen.contenders[(at + turn) % len(chosen.contenders)]
            if contender in too_slow:
                continue
            for table in tables:
                session.sql(f"REFRESH TABLE {table}")
            busy = noise()
            with tempfile.TemporaryDirectory() as scratch:
                cost, answers[contender] = cold_run(
                    session, meter, contender, "all", statement, Path(scratch)
                )
                pruned = _pruned(Path(scratch)) if contender == OURS else None
            if cost.seconds > chosen.patience:
                too_slow.add(contender)
            if turn or contender in too_slow:  # the first turn warms up
                print(
                    f"q{query:02}  {contender:<22}{cost.seconds:8.2f} s"
                    f"{cost.partitions_fetched:8,} partitions{cost.bytes_read:14,} bytes"
                    + (f"  kept {pruned.kept:,} of {pruned.total:,}" if pruned else ""),
                    flush=True,
                )
                yield Run(query, contender, cost, busy, pruned)


def _pruned(folder: Path) -> Pruned:
    from airflow_hive_opt.runtime.descriptor import decode

    found = decode((folder / "descriptor.json").read_bytes())
    reasons = {decision.reason for decision in found.decisions if decision.reason != "PRUNED"}
    return Pruned(found.kept, found.total, tuple(sorted(reasons)))


def _same(session: SparkSession, sql: str, answers: dict[str, Rows]) -> bool:
    """Whether all rows are equal, in any order.

    A LIMIT may cut between rows of equal rank. If rows differ, the statement without its LIMIT
    decides.
    """
    if len({_text(rows) for rows in answers.values()}) == 1:
        return True
    if not _LIMIT.search(sql):
        return False
    whole = _LIMIT.sub("", sql)
    statement, meter = Statement(whole, whole, ()), Meter(session)
    texts = set()
    for contender in (TUNED, OURS):
        with tempfile.TemporaryDirectory() as scratch:
            _, rows = cold_run(session, meter, contender, "all", statement, Path(scratch))
        texts.add(_text(rows))
    return len(texts) == 1


def _text(rows: Rows) -> str:
    """The rows as sorted text; rounds floats, because the last digits of their sums vary."""
    return "\n".join(
        sorted(
            repr([f"{cell:.9g}" if isinstance(cell, float) else cell for cell in row])
            for row in rows
        )
    )


def generate(folder: Path, scale: float) -> Path:
    """Generates TPC-DS data as Parquet, one file for each table, if it is missing."""
    target = folder / f"tpcds-{scale}"
    if not target.exists():
        unfinished = folder / "tpcds.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [Path(sys.executable).parent / "tpcgen-cli", "tpcds", "parquet"]
        subprocess.run(
            [*command, f"--scale-factor={scale}", f"--output-dir={unfinished}"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        unfinished.rename(target)
    return target


def load(session: SparkSession, data: Path, database: str) -> None:
    """Creates the missing tables in the metastore."""
    session.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    for file in sorted(data.glob("*.parquet")):
        name = f"{database}.{file.stem}"
        column = PARTITIONED.get(file.stem)
        if session.catalog.tableExists(name):
            continue
        print(f"loading {name}", flush=True)
        frame = session.read.parquet(str(file))
        if column is None:
            frame.coalesce(1).write.saveAsTable(name)
        else:
            frame = frame.repartition(8, column).sortWithinPartitions(column)
            frame.write.partitionBy(column).saveAsTable(name)


def query_texts() -> dict[int, str]:
    """The 99 queries by number, in Spark's form: without the semicolon at the end."""
    import duckdb

    spec = find_spec("duckdb_extension_tpcds")
    assert spec is not None and spec.origin is not None
    (extension,) = Path(spec.origin).parent.rglob("tpcds.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        found = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {number: text.strip().removesuffix(";").rstrip() for number, text in found}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--scale", type=float, default=1)
    add("--queries", type=int, nargs="+", default=QUERIES)
    add("--contenders", nargs="+", choices=CONTENDERS, default=CONTENDERS)
    add("--repeats", type=int, default=3, help="runs of each contender that count")
    add("--patience", type=float, default=6, help="seconds; a slower contender runs once")
    add("--folder", type=Path, default=FOLDER)
    add("--results", type=Path, default=RESULTS)
    add("--add", action="store_true", help="to the results that are there, instead of anew")
    return parser.parse_args()


if __name__ == "__main__":
    main()
