"""Correlated queries on Spark, plain beside rewritten: time, shuffles, scans, shuffled bytes.

TPC-H data and a warehouse lie under ``.demo/``; what is there is used again. Each query runs in
four ways: adaptive execution on and off, Spark's broadcast joins as they come and off. Plain and
rewritten alternate, their rows are compared, and a run of each before is not counted. Beside the
time on the clock stands the processor time of Spark's JVM, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from correlation_queries import QUERIES

from airflow_hive_opt.planner.rewriting import rewrite
from airflow_hive_opt.planner.settings import Settings
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.session import embedded_conf, spark_session

DEMO = Path(__file__).resolve().parents[1] / ".demo"
TABLES = ("lineitem", "orders", "customer", "part", "supplier", "nation")
ADAPTIVE = "spark.sql.adaptive.enabled"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


@dataclass(frozen=True)
class Work:
    """What Spark did for one run."""

    shuffles: int
    scans: int
    shuffled_bytes: int


@dataclass(frozen=True)
class Outcome:
    """One query in one session; the ratios are rewritten over plain."""

    query: str
    adaptive: bool
    broadcast: bool
    applied: tuple[str, ...]
    plain_seconds: float
    ratio: float
    plain_cpu_seconds: float
    cpu_ratio: float
    plain: Work
    rewritten: Work
    same_rows: bool


def main() -> None:
    """Generates what is missing, runs all, prints a table; 1 if rows differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", default="0.5")
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--mode", default="auto", choices=("auto", "true"))
    options.add_argument("--only", default="", help="part of a query's name")
    chosen = options.parse_args()
    data = generate(chosen.scale)
    warehouse = DEMO / "correlation"
    shutil.rmtree(warehouse, ignore_errors=True)
    conf = {
        **embedded_conf(warehouse),
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",
    }
    found = []
    with spark_session("correlation", conf) as spark:
        spark.sparkContext.setLogLevel("ERROR")
        build(spark, data, float(chosen.scale))
        settings = Settings.of({"hive.optimize.correlation": chosen.mode})
        print(f"{'query':<18}{'adaptive':>9}{'joins':>10}{'plain s':>9}{'ratio':>7}", end="")
        print(f"{'cpu s':>8}{'ratio':>7}", end="")
        print(f"{'shuffles':>10}{'scans':>8}{'MB shuffled':>14}  rewriting")
        for name, sql in QUERIES.items():
            if chosen.only not in name:
                continue
            for adaptive in (True, False):
                for broadcast in (True, False):
                    outcome = compare(
                        spark, name, sql, settings, chosen.repeat, adaptive, broadcast
                    )
                    found.append(outcome)
                    show(outcome)
    (DEMO / "correlation.json").write_text(json.dumps([asdict(each) for each in found], indent=1))
    summary(found)


def generate(scale: str) -> Path:
    """TPC-H as Parquet."""
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


def build(spark, data: Path, scale: float) -> None:
    """The tables; clicks are made up: as many as there are lineitems, 300 for each user."""
    for table in TABLES:
        path = data / f"{table}.parquet"
        spark.sql(f"CREATE TABLE {table} USING parquet LOCATION '{path}'")
    rows = int(6_000_000 * scale)
    spark.sql(
        f"""CREATE TABLE clicks USING parquet AS
        SELECT CAST(abs(hash(id)) % {rows // 300} AS int) AS uid, id AS ts,
          CAST(abs(hash(id, 1)) % 20 AS int) AS cid FROM range({rows})"""
    )


def compare(spark, name, sql, settings, repeat, adaptive, broadcast) -> Outcome:
    """Both statements, alternating."""
    spark.conf.set(ADAPTIVE, str(adaptive).lower())
    spark.conf.set(BROADCAST, "10485760" if broadcast else "-1")
    rewriting = rewrite(sql, SparkCatalog(spark), settings)
    seconds: dict[str, list[float]] = {sql: [], rewriting.sql: []}
    cpu: dict[str, list[float]] = {sql: [], rewriting.sql: []}
    work: dict[str, Work] = {}
    rows: dict[str, list[str]] = {}
    for number in range(repeat + 1):
        order = [sql, rewriting.sql] if rewriting.applied else [sql]
        for text in order if number % 2 else reversed(order):
            frame = spark.sql(text)
            began, busy = time.perf_counter(), cpu_seconds(spark)
            answer = frame.collect()
            if number:
                seconds[text].append(time.perf_counter() - began)
                cpu[text].append(cpu_seconds(spark) - busy)
            rows[text] = sorted(map(repr, answer))
            work[text] = measure(frame)
    plain, plain_cpu = statistics.median(seconds[sql]), statistics.median(cpu[sql])
    return Outcome(
        name,
        adaptive,
        broadcast,
        rewriting.applied,
        plain,
        statistics.median(seconds[rewriting.sql]) / plain,
        plain_cpu,
        statistics.median(cpu[rewriting.sql]) / plain_cpu,
        work[sql],
        work[rewriting.sql],
        rows[sql] == rows[rewriting.sql],
    )


def cpu_seconds(spark) -> float:
    """Processor time of the JVM so far."""
    info = spark._jvm.java.lang.ProcessHandle.current().info()
    return info.totalCpuDuration().get().toMillis() / 1000


def measure(frame) -> Work:
    """Shuffles by key, file scans and shuffled bytes of a frame that has run."""
    shuffles = scans = written = 0
    waiting = [frame._jdf.queryExecution().executedPlan()]
    to_java = frame.sparkSession._jvm.scala.jdk.javaapi.CollectionConverters.asJava
    while waiting:
        plan = waiting.pop()
        kind = plan.getClass().getSimpleName()
        if kind == "AdaptiveSparkPlanExec":
            waiting.append(plan.executedPlan())
        elif kind.endswith("QueryStageExec"):
            waiting.append(plan.plan())
        elif kind != "ReusedExchangeExec":
            waiting += list(to_java(plan.children())) + list(to_java(plan.subqueries()))
        if kind == "ShuffleExchangeExec":
            shuffles += plan.outputPartitioning().getClass().getSimpleName() != "SinglePartition$"
            written += plan.metrics().apply("shuffleBytesWritten").value()
        scans += kind == "FileSourceScanExec"
    return Work(shuffles, scans, written)


def show(found: Outcome) -> None:
    """One line."""
    plain, other = found.plain, found.rewritten
    megabytes = f"{plain.shuffled_bytes / 1e6:.1f} -> {other.shuffled_bytes / 1e6:.1f}"
    cells = (
        f"{found.query:<18}",
        f"{'on' if found.adaptive else 'off':>9}",
        f"{'broadcast' if found.broadcast else 'shuffle':>10}",
        f"{found.plain_seconds:>9.2f}{found.ratio:>7.2f}",
        f"{found.plain_cpu_seconds:>8.2f}{found.cpu_ratio:>7.2f}",
        f"{f'{plain.shuffles} -> {other.shuffles}':>10}{f'{plain.scans} -> {other.scans}':>8}",
        f"{megabytes:>14}  {', '.join(found.applied) or 'none'}",
        "" if found.same_rows else "  ROWS DIFFER",
    )
    print("".join(cells), flush=True)


def summary(found: list[Outcome]) -> None:
    """Medians and the worst, by the clock and by the processor, and whether the rows are equal."""
    names = dict.fromkeys(each.query for each in found)
    for name in ("all", *names):
        mine = [each for each in found if name in ("all", each.query)]
        clock, cpu = [each.ratio for each in mine], [each.cpu_ratio for each in mine]
        print(
            f"{name:<18} clock: median {statistics.median(clock):.2f}, worst {max(clock):.2f}; "
            f"processor: median {statistics.median(cpu):.2f}, worst {max(cpu):.2f}"
        )
    if not all(each.same_rows for each in found):
        sys.exit("rows differ")


if __name__ == "__main__":
    main()
