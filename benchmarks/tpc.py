"""Runs the queries of TPC-DS or TPC-H, whole, with the operator's functions and with plain Spark.

    python -m benchmarks.tpc tpcds --scale 1 --repeats 3
    python -m benchmarks.tpc tpch --scale 1 --queries 3 7 --cold-repeats 2

The fact tables of TPC-DS are partitioned by their date key, those of TPC-H by the month of their
date. Warm: one session, in which each contender runs once before it counts. Cold: a fresh JVM for
each run. A run of ours knows what the run before it found out, as a scheduled task does. Results go
to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import slow_listing
from benchmarks.contenders import OURS, SPARK, SWITCHED, TUNED, Rows, Statement, cold_run
from benchmarks.fresh_process import run_in_process
from benchmarks.measure import Cost, Machine, Meter, noise, quiet_session
from benchmarks.report import RESULTS, added
from benchmarks.scans import ScanCounter
from benchmarks.suites import SUITES, Suite, generate, load, query_texts
from benchmarks.tpc_report import write_suite
from benchmarks.warehouse import FOLDER, servers, session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENDERS = (SPARK, TUNED, SWITCHED, OURS)
_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Run:
    """One measured run.

    ``scans`` has the partitions that each scan read, by fact table. ``kept`` has those that our
    lists name, and ``whole`` the reasons of scans without a list, by fact table. ``session`` is the
    time of Spark's start, for cold runs only.
    """

    query: int
    contender: str
    start: str
    cost: Cost
    noise: float
    scans: dict[str, list[int]] = field(default_factory=dict)
    kept: dict[str, list[int]] = field(default_factory=dict)
    whole: dict[str, list[str]] = field(default_factory=dict)
    session: float = 0.0


def main() -> None:
    """Runs the chosen queries and writes the results; exits 1 if rows differ."""
    chosen = _arguments()
    suite = SUITES[chosen.suite]
    texts = query_texts(suite)
    data = generate(suite, chosen.folder, chosen.scale)
    database = f"{suite.name}_{str(chosen.scale).replace('.', '_')}"
    runs: list[Run] = []
    questions: dict[int, dict[str, int]] = {}
    differing: list[int] = []
    refused: list[int] = []
    with servers(chosen.folder) as running:
        conf = {
            **session_conf(running.metastore.uri, running.metastore.warehouse),
            **slow_listing.conf(running.folder / "slow_listing"),
        }
        with quiet_session(suite.name, conf) as session:
            totals = load(session, suite, data, database)
            session.sql(f"USE {database}")
            for query in chosen.queries or sorted(texts):
                statement = _statement(suite, texts[query])
                if not _planned(session, statement.sql):
                    print(f"q{query:02}: plain Spark rejects it", flush=True)
                    refused.append(query)
                    continue
                answers: dict[str, Rows] = {}
                questions[query] = {}
                runs += _warm(session, query, statement, chosen, answers, questions[query])
                if not _same(session, statement.sql, answers):
                    differing.append(query)
                    print(f"q{query:02}: rows DIFFER", flush=True)
        for query, skipped_keys in questions.items():
            statement = replace(_statement(suite, texts[query]), skipped_keys=skipped_keys)
            runs += _cold(conf, database, query, statement, chosen)
    records = [asdict(run) for run in runs]
    if not records:
        sys.exit("nothing was measured: --repeats and --cold-repeats are 0")
    file = chosen.results / f"{suite.name}.json"
    if chosen.add and file.exists():
        before = json.loads(file.read_text())["differing"]
        differing += [query for query in before if query not in {run.query for run in runs}]
        records = added(file, records)
    document = {
        "machine": asdict(Machine()),
        "scale": chosen.scale,
        "totals": totals,
        "differing": sorted(differing),
        "runs": records,
    }
    write_suite(suite.title, document, file)
    sys.exit(1 if differing else 0)


def _statement(suite: Suite, sql: str) -> Statement:
    return Statement(
        sql, sql, tuple(name for name in suite.partitioned if re.search(rf"\b{name}\b", sql))
    )


def _planned(session: SparkSession, sql: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        session.sql(sql)
    except PySparkException:
        return False
    return True


def _warm(
    session: SparkSession,
    query: int,
    statement: Statement,
    chosen: argparse.Namespace,
    answers: dict[str, Rows],
    skipped_keys: dict[str, int],
) -> Iterator[Run]:
    """Runs each contender in turn; ``answers`` and ``skipped_keys`` take what the runs find."""
    meter, counter = Meter(session), ScanCounter(session)
    too_slow: set[str] = set()
    for turn in range(chosen.repeats + 1):
        for at in range(len(chosen.contenders)):
            contender = chosen.contenders[(at + turn) % len(chosen.contenders)]
            if contender in too_slow:
                continue
            for table in statement.partitioned:
                session.sql(f"REFRESH TABLE {table}")
            busy = noise()
            counter.read()
            with tempfile.TemporaryDirectory() as scratch:
                known = replace(statement, skipped_keys=dict(skipped_keys))
                cost, answers[contender] = cold_run(
                    session, meter, contender, "all", known, Path(scratch)
                )
                listed = _listed(Path(scratch), skipped_keys) if contender == OURS else ({}, {})
            scans = counter.read()
            read = {name: scans[name] for name in statement.partitioned if name in scans}
            if cost.seconds > chosen.patience:
                too_slow.add(contender)
            if turn or contender in too_slow or not chosen.repeats:  # the first turn warms up
                yield _said(Run(query, contender, "warm", cost, busy, read, *listed))


def _cold(
    conf: dict[str, str],
    database: str,
    query: int,
    statement: Statement,
    chosen: argparse.Namespace,
) -> Iterator[Run]:
    for turn in range(chosen.cold_repeats):
        for at in range(len(chosen.contenders)):
            contender = chosen.contenders[(at + turn) % len(chosen.contenders)]
            if contender == SPARK:  # its listing alone takes minutes
                continue
            busy = noise()
            with tempfile.TemporaryDirectory() as scratch:
                answer = run_in_process(
                    conf, statement, contender, "all", Path(scratch), database=database
                )
            yield _said(Run(query, contender, "cold", answer.cost, busy, session=answer.session))


def _said(run: Run) -> Run:
    kept = "".join(f"  {table} {counts}" for table, counts in run.kept.items())
    print(
        f"q{run.query:02}  {run.start}  {run.contender:<22}{run.cost.seconds:8.2f} s"
        f"{run.cost.partitions_fetched:8,} partitions{run.cost.bytes_read:14,} bytes{kept}",
        flush=True,
    )
    return run


def _listed(
    folder: Path, skipped_keys: dict[str, int]
) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
    """By table, the lengths of the descriptor's lists and the reasons of scans without one.

    ``skipped_keys`` takes what the next run need not read; the tables of a benchmark do not
    change, so its count stays 0.
    """
    from airflow_hive_opt.documents.descriptor import decode

    found = decode((folder / "descriptor.json").read_bytes())
    kept: dict[str, list[int]] = {}
    whole: dict[str, list[str]] = {}
    for target in found.targets:
        kept.setdefault(target.scan.short_name, []).append(target.kept)
    for decision in found.decisions:
        if decision.skipped_keys is not None:
            skipped_keys[decision.skipped_keys.digest] = 0
        if decision.reason != "PRUNED":
            whole.setdefault(decision.scan.short_name, []).append(decision.reason)
    return kept, whole


def _same(session: SparkSession, sql: str, answers: dict[str, Rows]) -> bool:
    """Whether all rows are equal, in any order.

    A LIMIT may cut between rows of equal rank. If rows differ, the statement without its LIMIT
    decides.
    """
    if len({text_of(rows) for rows in answers.values()}) == 1:
        return True
    if not _LIMIT.search(sql):
        return False
    whole = _LIMIT.sub("", sql)
    statement, meter = Statement(whole, whole, ()), Meter(session)
    texts = set()
    for contender in (TUNED, OURS):
        with tempfile.TemporaryDirectory() as scratch:
            _, rows = cold_run(session, meter, contender, "all", statement, Path(scratch))
        texts.add(text_of(rows))
    return len(texts) == 1


def text_of(rows: Rows) -> str:
    """The rows as sorted text; rounds floats, because the last digits of their sums vary."""
    return "\n".join(
        sorted(
            repr([f"{cell:.9g}" if isinstance(cell, float) else cell for cell in row])
            for row in rows
        )
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("suite", choices=sorted(SUITES))
    add("--scale", type=float, default=1)
    add("--queries", type=int, nargs="+", help="numbers; all by default")
    add("--contenders", nargs="+", choices=CONTENDERS, default=(TUNED, SWITCHED, OURS))
    add("--repeats", type=int, default=3, help="warm runs of each contender that count")
    add("--cold-repeats", type=int, default=0)
    add("--patience", type=float, default=30, help="seconds; a slower contender runs once")
    add("--folder", type=Path, default=FOLDER)
    add("--results", type=Path, default=RESULTS)
    add("--add", action="store_true", help="keep the earlier results, and add to them")
    return parser.parse_args()


if __name__ == "__main__":
    main()
