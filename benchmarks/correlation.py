"""Correlated queries on Spark, plain and rewritten: time, shuffles, scans, shuffled bytes.

    python -m benchmarks.correlation --scale 0.5 --repeats 3 --joins shuffle --only Q21 click

TPC-H data is stored under ``.demo/`` and used again. Each query runs in four sessions: adaptive
execution on and off, Spark's broadcast joins at their default and off. Plain and rewritten runs
alternate, their rows are compared, and the first run of each does not count. The results have
wall-clock time and the processor time of Spark's JVM, which a busy machine changes less. They go to
``benchmarks/results``. A repeated part replaces its earlier results.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.local_task.correlate import correlate
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.physical_operators import operators_of
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.statement.settings import Settings
from benchmarks.correlation_queries import QUERIES
from benchmarks.correlation_report import keep
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEMO = Path(__file__).resolve().parents[1] / ".demo"
# Each table with its join and grouping columns, which get statistics.
TABLES = {
    "lineitem": "l_orderkey, l_partkey, l_suppkey, l_linenumber",
    "orders": "o_orderkey, o_custkey, o_orderpriority",
    "customer": "c_custkey",
    "part": "p_partkey",
    "supplier": "s_suppkey",
    "nation": "n_nationkey",
}
BOTH = {"on": (True,), "off": (False,), "both": (True, False)}
JOINS = {"broadcast": (True,), "shuffle": (False,), "both": (True, False)}


@dataclass(frozen=True)
class Work:
    """What Spark did in one run."""

    shuffles: int
    scans: int
    shuffled_bytes: int


def main() -> None:
    """Generates missing data, runs the chosen queries, writes results; exits 1 if rows differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="0.5")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mode", default="auto", choices=("auto", "true"))
    parser.add_argument("--adaptive", default="both", choices=tuple(BOTH))
    parser.add_argument("--joins", default="both", choices=tuple(JOINS))
    parser.add_argument("--only", nargs="*", default=[""], help="parts of queries' names")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    data = generate(chosen.scale)
    with tempfile.TemporaryDirectory() as scratch:
        conf = {
            **embedded_conf(Path(scratch) / "warehouse", "local[2]"),
            "spark.driver.memory": "4g",
            "spark.sql.shuffle.partitions": "8",
        }
        with quiet_session("correlation", conf) as session:
            queries = {
                name: sql
                for name, sql in QUERIES.items()
                if any(part.lower() in name.lower() for part in chosen.only)
            }
            build(session, data, float(chosen.scale), " ".join(queries.values()))
            differing = []
            for run in runs(session, queries, chosen):
                keep(run, asdict(Machine()), chosen.results)
                differing += [] if run["same_rows"] else [run["query"]]
    print(f"==> {chosen.results / 'correlation.md'}")
    if differing:
        sys.exit(f"rows differ: {', '.join(differing)}")


def generate(scale: str) -> Path:
    """Generates TPC-H data as Parquet, if it is missing."""
    data = DEMO / f"tpch-{scale}"
    if not data.exists():
        print(f"==> generating TPC-H data at scale {scale}", flush=True)
        unfinished = DEMO / "tpch.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run(
            [
                Path(sys.executable).parent / "tpcgen-cli",
                *("tpch", "parquet", "--scale-factor", scale),
                f"--tables={','.join(TABLES)}",
                f"--output-dir={unfinished}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        unfinished.rename(data)
    return data


def build(session: SparkSession, data: Path, scale: float, read: str) -> None:
    """Creates the tables in the text ``read``; clicks are synthetic: 300 for each user."""
    for table, keys in TABLES.items():
        if table not in read:
            continue
        path = data / f"{table}.parquet"
        session.sql(f"CREATE TABLE {table} USING parquet LOCATION '{path}'")
        session.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS {keys}")
    rows = int(6_000_000 * scale)
    if "clicks" not in read:
        return
    session.sql(
        f"""CREATE TABLE clicks USING parquet AS
        SELECT CAST(abs(hash(id)) % {rows // 300} AS int) AS uid, id AS ts,
          CAST(abs(hash(id, 1)) % 20 AS int) AS cid FROM range({rows})"""
    )


def runs(
    session: SparkSession, queries: dict[str, str], chosen: argparse.Namespace
) -> Iterator[Record]:
    """One record for each query in each chosen session."""
    settings = Settings.of({"hive.optimize.correlation": chosen.mode})
    for name, sql in queries.items():
        for adaptive in BOTH[chosen.adaptive]:
            for broadcast in JOINS[chosen.joins]:
                conf = {
                    "spark.sql.adaptive.enabled": str(adaptive).lower(),
                    "spark.sql.autoBroadcastJoinThreshold": "10485760" if broadcast else "-1",
                }
                with conf_set(session, conf):
                    run = compare(session, sql, settings, chosen.repeats)
                run |= {"query": name, "scale": chosen.scale, "mode": chosen.mode}
                run |= {"adaptive": adaptive, "broadcast": broadcast}
                show(run)
                yield run


def compare(session: SparkSession, sql: str, settings: Settings, repeats: int) -> Record:
    """Runs both statements alternately; only the plain one if there is no rewriting."""
    began = time.perf_counter()
    rewriting = correlate(session, SparkCatalog(session), sql, settings)
    planning = time.perf_counter() - began
    texts = {"plain": sql, **({"rewritten": rewriting.sql} if rewriting.applied else {})}
    seconds: dict[str, list[float]] = {name: [] for name in texts}
    cpu: dict[str, list[float]] = {name: [] for name in texts}
    work: dict[str, Work] = {}
    rows: dict[str, list[str]] = {}
    for number in range(repeats + 1):
        for name in texts if number % 2 else reversed(texts):
            began, busy = time.perf_counter(), _cpu_seconds(session)
            frame = session.sql(texts[name])
            answer = frame.collect()
            if number:
                seconds[name].append(time.perf_counter() - began)
                cpu[name].append(_cpu_seconds(session) - busy)
            rows[name] = sorted(map(repr, answer))
            work[name] = measure(frame)
    return {
        "applied": list(rewriting.applied),
        "refused": [f"{rule}: {reason}" for rule, reason in rewriting.refused],
        "planning": planning,
        "seconds": seconds,
        "cpu": cpu,
        "work": {name: asdict(done) for name, done in work.items()},
        "same_rows": all(found == rows["plain"] for found in rows.values()),
        "noise": noise(),
    }


def measure(frame: DataFrame) -> Work:
    """Shuffles by key, file scans and shuffled bytes of a frame that has run."""
    shuffles = scans = written = 0
    for kind, plan in operators_of(frame):
        if kind == "ShuffleExchangeExec":
            shuffles += plan.outputPartitioning().getClass().getSimpleName() != "SinglePartition$"
            written += plan.metrics().apply("shuffleBytesWritten").value()
        scans += kind == "FileSourceScanExec"
    return Work(shuffles, scans, written)


def _cpu_seconds(session: SparkSession) -> float:
    """Processor time of the JVM so far, in seconds."""
    jvm: Any = session._jvm
    info = jvm.java.lang.ProcessHandle.current().info()
    return float(info.totalCpuDuration().get().toMillis()) / 1000


def show(run: Record) -> None:
    """Prints one line of progress."""
    session = f"adaptive {'on' if run['adaptive'] else 'off'}, "
    session += "broadcast" if run["broadcast"] else "shuffle"
    seconds = {name: min(found) for name, found in run["seconds"].items()}
    told = ", ".join(f"{name} {found:.2f} s" for name, found in seconds.items())
    rows = "" if run["same_rows"] else "  ROWS DIFFER"
    print(f"{run['query']:<22}{session:<24}{told}{rows}", flush=True)


if __name__ == "__main__":
    main()
