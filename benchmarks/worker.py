"""What does the local task in the worker answer, and what does it cost, compared with Spark's?

    python -m benchmarks.worker --scale 0.01 --repeats 5

- All queries of TPC-DS and TPC-H: the partitions that the worker keeps, beside those that Spark's
  local task keeps. The worker must keep them all, and may keep more.
- One statement that needs 30 of 20,000 partitions, in processes that have just started: seconds,
  CPU time and memory.

Tables are in a Hive Metastore, and both ask it. Results go to ``benchmarks/results``; the command
exits with 1 if the worker leaves out a partition.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from upath import UPath

from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS
from benchmarks.suites import SUITES, Suite, generate, load, query_texts
from benchmarks.warehouse import DATABASE, FOLDER, Servers, build, servers, session_conf
from benchmarks.worker_process import SPARK, WORKER, by_spark, by_worker
from benchmarks.worker_report import write_worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.descriptor import Descriptor

MATCHING = 30


@dataclass(frozen=True)
class Pair:
    """A query and one of its fact tables, of which Spark's local task prunes at least one scan.

    ``why`` says why the worker does not prune them too; empty if it does. ``kept`` are the
    partitions that Spark keeps, of all those scans together, ``more`` those that the worker keeps
    besides them, and ``missing`` those that it leaves out.
    """

    suite: str
    query: int
    table: str
    total: int
    kept: int
    more: int = 0
    missing: int = 0
    why: str = ""


@dataclass(frozen=True)
class Measured:
    """One local task in a process of its own; ``peak`` is its memory in bytes."""

    by: str
    seconds: float
    cpu_seconds: float
    peak: int
    kept: int
    noise: float
    load: float = field(default_factory=lambda: os.getloadavg()[0])


def main() -> None:
    """Runs both parts and writes the results."""
    chosen = _arguments()
    with servers(chosen.folder) as running:
        conf = session_conf(running.metastore.uri, running.metastore.warehouse)
        with quiet_session("worker", conf) as session:
            pairs = [
                pair
                for name in chosen.suites
                for pair in _answers(session, running, SUITES[name], chosen.folder, chosen.scale)
            ]
            build(session, running, chosen.partitions)
        measured = [
            one
            for _ in range(chosen.repeats)
            for by in (WORKER, SPARK)
            for one in [_cold(by, running, conf, chosen.partitions)]
        ]
    document = {
        "machine": asdict(Machine()),
        "scale": chosen.scale,
        "partitions": chosen.partitions,
        "matching": MATCHING,
        "pairs": [asdict(pair) for pair in pairs],
        "measured": [asdict(one) for one in measured],
    }
    write_worker(document, chosen.results)
    sys.exit(1 if any(pair.missing for pair in pairs) else 0)


def qualified(sql: str, database: str) -> str:
    """The statement with its tables' names in ``database``: the worker's session is in no other.

    >>> qualified("WITH a AS (SELECT * FROM t) SELECT * FROM a, t, u x", "d")
    'WITH a AS (SELECT * FROM d.t) SELECT * FROM a, d.t, d.u x'
    """
    from airflow_hive_opt.statement.edits import Edit, spliced
    from airflow_hive_opt.statement.parse import Span, name_span, parse
    from airflow_hive_opt.statement.tables import mentions

    spans = [name_span(table) for table in mentions(parse(sql)).reads]
    starts = {span.start for span in spans if span is not None}
    return spliced(sql, [Edit(Span(start, start), f"{database}.") for start in starts])


def compared(suite: str, query: int, spark: Descriptor, worker: Descriptor | str) -> Iterator[Pair]:
    """The pairs of a query. ``worker`` is the worker's descriptor, or why there is none."""
    found, reasons = {}, {}
    if not isinstance(worker, str):
        found = {target.scan.reference: target for target in worker.targets}
        reasons = {each.scan.reference: each.reason for each in worker.decisions}
    for table in dict.fromkeys(target.scan.short_name for target in spark.targets):
        scans = [target for target in spark.targets if target.scan.short_name == table]
        total, kept = sum(scan.total for scan in scans), sum(scan.kept for scan in scans)
        left = [scan.scan.reference for scan in scans if scan.scan.reference not in found]
        if left:
            why = worker if isinstance(worker, str) else reasons.get(left[0], "no decision")
            yield Pair(suite, query, table, total, kept, why=why)
            continue
        more = missing = 0
        for scan in scans:
            theirs = {partition.values for partition in scan.partitions}
            ours = {p.values for p in found[scan.scan.reference].partitions}
            more, missing = more + len(ours - theirs), missing + len(theirs - ours)
        yield Pair(suite, query, table, total, kept, more, missing)


def _answers(
    session: SparkSession, running: Servers, suite: Suite, folder: Path, scale: float
) -> Iterator[Pair]:
    database = f"{suite.name}_{str(scale).replace('.', '_')}"
    load(session, suite, generate(suite, folder, scale), database)
    for query, text in sorted(query_texts(suite).items()):
        sql = qualified(text, database)
        with tempfile.TemporaryDirectory() as scratch:
            spark = by_spark(session, sql, UPath(scratch) / "descriptor.json")
        worker = by_worker(running.metastore.uri, sql)
        for pair in compared(suite.name, query, spark, worker):
            print(_line(pair), flush=True)
            yield pair


def _line(pair: Pair) -> str:
    told = pair.why or f"{pair.more:+} of {pair.kept:,}" + " MISSING" * (pair.missing > 0)
    return f"{pair.suite} q{pair.query:02} {pair.table:<16} {told}"


def _cold(by: str, running: Servers, conf: Mapping[str, str], partitions: int) -> Measured:
    """One local task in a fresh process."""
    sql = (
        f"SELECT sum(f.amount) FROM {DATABASE}.fact_{partitions} f "
        f"JOIN {DATABASE}.dim_{partitions} d ON f.ds = d.ds WHERE d.rank < {MATCHING}"
    )
    busy = noise()
    order = json.dumps([by, running.metastore.uri, dict(conf), sql, time.monotonic()])
    command = [sys.executable, "-m", "benchmarks.worker_process"]
    done = subprocess.run(
        command, input=order, check=True, text=True, stdout=subprocess.PIPE, stderr=sys.stderr
    )
    found = Measured(by, noise=busy, **json.loads(done.stdout.splitlines()[-1]))
    print(
        f"{by:<8}{found.seconds:8.2f} s {found.cpu_seconds:8.2f} s of CPU time"
        f"{found.peak / 1e6:8,.0f} MB, load {found.load:.1f}",
        flush=True,
    )
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--suites", nargs="*", choices=sorted(SUITES), default=sorted(SUITES))
    add("--scale", type=float, default=0.01)
    add("--partitions", type=int, default=20_000)
    add("--repeats", type=int, default=5, help="of the processes")
    add("--folder", type=Path, default=FOLDER)
    add("--results", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
