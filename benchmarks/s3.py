"""What a star join costs on S3, and how many requests, if few or all partitions match.

    python -m benchmarks.s3 --partitions 10000 --matching 30 10000 --latency 0 5 20

The statement is the growth benchmark's. All files are on moto's S3 server on loopback, to which
``--latency`` adds milliseconds a request; Spark and the metastore reach it through S3A. Warm: one
session, in which each contender runs once before all that counts. Cold: a fresh JVM for each run.
Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from signal import SIGTERM, signal
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import slow_listing
from benchmarks.contenders import (
    FLOOR,
    OURS,
    SWITCHED,
    Rows,
    Statement,
    check_same_rows,
    star_join,
    warm_run,
)
from benchmarks.fresh_process import run_in_process
from benchmarks.measure import Cost, Machine, Meter, noise, quiet_session
from benchmarks.report import RESULTS, about, spread, table_row
from benchmarks.warehouse import (
    DATABASE,
    FOLDER,
    make_dimension,
    make_fact,
    one_file,
    register,
    session_conf,
)
from tests.services.jars import jars
from tests.services.metastore import metastore
from tests.services.postgres import Postgres, postgres
from tests.services.s3_server import JARS, S3Server, s3_server, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUCKET = "lake"
_CONTENDERS = (SWITCHED, OURS, FLOOR)


@dataclass(frozen=True)
class Setting:
    """The number of partitions, how many match, and the milliseconds added to each request."""

    partitions: int
    matching: int
    latency: int


@dataclass(frozen=True)
class Run:
    """One measured run; ``requests`` are S3's by kind, ``load`` is the machine's of one minute."""

    setting: Setting
    contender: str
    start: str
    cost: Cost
    requests: dict[str, int]
    noise: float
    load: float


def main() -> None:
    """Runs the chosen settings and writes the results."""
    chosen = _arguments()
    settings = [
        Setting(chosen.partitions, matching, latency)
        for matching in chosen.matching
        for latency in (chosen.latency if matching < chosen.partitions else chosen.latency[:1])
    ]
    with _servers(chosen.folder / "s3") as (store, database, conf):
        with quiet_session("s3", conf) as session:
            _build(session, store, database, chosen)
            statements = {
                setting: star_join(session, setting.partitions, setting.matching)
                for setting in settings
            }
            runs = list(_warm(session, store, statements, chosen))
        runs += _cold(conf, store, statements, chosen)
    if not runs:
        sys.exit("nothing was measured: --repeats and --cold-repeats are 0")
    write_s3([asdict(run) for run in runs], asdict(Machine()), chosen.results)


@contextmanager
def _servers(folder: Path) -> Iterator[tuple[S3Server, Postgres, dict[str, str]]]:
    """S3, the metastore's database, and Spark's settings, until the block ends.

    moto has its objects in memory, so nothing is kept for the next time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    signal(SIGTERM, lambda *_: sys.exit(143))  # the servers must end with the benchmark
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        s3_server() as store,
        postgres() as database,
    ):
        store.make_bucket(_BUCKET)
        place, options = Path(scratch) / "metastore", "-Xmx2g"
        s3a, extra = store.s3a(), jars(JARS)
        with metastore(place, database, java_options=options, beside=extra, settings=s3a) as hive:
            local = slow_listing.conf(folder.parent / "slow_listing")
            conf = session_conf(hive.uri, hive.warehouse) | local | spark_conf(store)
            name = "spark.driver.extraClassPath"
            conf[name] = f"{conf[name]}:{local[name]}"
            yield store, database, conf


def _build(
    session: SparkSession, store: S3Server, database: Postgres, chosen: argparse.Namespace
) -> None:
    """Creates ``fact_N`` and ``dim_N`` in the bucket; the partitions' objects past the server."""
    fact, dimension = (f"{DATABASE}.{name}_{chosen.partitions}" for name in ("fact", "dim"))
    session.sql(f"CREATE DATABASE {DATABASE} LOCATION 's3a://{_BUCKET}/{DATABASE}'")
    days = make_fact(session, fact, chosen.partitions)
    with tempfile.TemporaryDirectory() as scratch:
        content = one_file(session, Path(scratch) / "model")
    folder = f"{DATABASE}/fact_{chosen.partitions}"
    for day in days:
        store.put(_BUCKET, f"{folder}/ds={day}/part-00000.parquet", content)
    register(database, fact, "ds", f"s3a://{_BUCKET}/{folder}", days, len(content))
    make_dimension(session, dimension, days)


def _warm(
    session: SparkSession,
    store: S3Server,
    statements: dict[Setting, Statement],
    chosen: argparse.Namespace,
) -> Iterator[Run]:
    meter = Meter(session)
    for at, (setting, statement) in enumerate(statements.items()):
        answers: dict[str, Rows] = {}
        for turn in range(at > 0, chosen.repeats + 1 if chosen.repeats else 0):
            for contender in chosen.contenders:

                def work(contender=contender, statement=statement) -> tuple[Cost, Rows]:
                    return warm_run(session, meter, contender, statement)

                run, answers[contender] = _measured(store, setting, contender, "warm", work)
                if turn:  # the very first turn warms up
                    yield _said(run)
        check_same_rows(answers, setting)


def _cold(
    conf: dict[str, str],
    store: S3Server,
    statements: dict[Setting, Statement],
    chosen: argparse.Namespace,
) -> Iterator[Run]:
    """Runs each contender in its own process."""
    for setting, statement in statements.items():
        if setting.latency not in chosen.cold_latency:
            continue
        answers: dict[str, Rows] = {}
        for _ in range(chosen.cold_repeats):
            for contender in chosen.contenders:

                def work(contender=contender, statement=statement) -> tuple[Cost, Rows]:
                    with tempfile.TemporaryDirectory() as scratch:
                        done = run_in_process(conf, statement, contender, "all", Path(scratch))
                    return done.cost, done.rows

                run, answers[contender] = _measured(store, setting, contender, "cold", work)
                yield _said(run)
        check_same_rows(answers, setting)


def _measured(
    store: S3Server,
    setting: Setting,
    contender: str,
    start: str,
    work: Callable[[], tuple[Cost, Rows]],
) -> tuple[Run, Rows]:
    busy, load = noise(), os.getloadavg()[0]
    store.forget()
    store.milliseconds = setting.latency
    try:
        cost, rows = work()
        requests = {str(kind): count for kind, count in sorted(store.requests().items())}
    finally:
        store.forget()
    return Run(setting, contender, start, cost, requests, busy, load), rows


def _said(run: Run) -> Run:
    setting = run.setting
    print(
        f"{setting.matching:>7,} of {setting.partitions:<7,}{setting.latency:>3} ms  {run.start}  "
        f"{run.contender:<24}{run.cost.seconds:8.2f} s{sum(run.requests.values()):7,} requests "
        f"{run.requests}  load {run.load:.1f}",
        flush=True,
    )
    return run


def write_s3(runs: list[dict[str, Any]], machine: dict[str, Any], folder: Path) -> None:
    """Writes ``s3.json`` and ``s3.md`` from the benchmark's runs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "s3.json").write_text(json.dumps({"machine": machine, "runs": runs}, indent=1))
    kinds = sorted({kind for run in runs for kind in run["requests"]})
    head = (
        *("partitions", "matching", "ms a request", "start", "contender", "seconds"),
        *("times as fast", "requests", *kinds, "partitions fetched", "load"),
    )
    lines = [table_row(head), table_row("---" if at < 5 else "---:" for at in range(len(head)))]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((*run["setting"].values(), run["start"], run["contender"]), []).append(
            run
        )
    middle = {at: median(run["cost"]["seconds"] for run in found) for at, found in groups.items()}
    for at, found in groups.items():
        *setting, start, contender = at
        spark = middle.get((*setting, start, SWITCHED))
        first = found[0]
        lines.append(
            table_row(
                (
                    *(f"{number:,}" for number in setting),
                    *(start, contender),
                    spread([run["cost"]["seconds"] for run in found]),
                    f"{spark / middle[at]:.1f}" if spark else "",
                    f"{sum(first['requests'].values()):,}",
                    *(f"{first['requests'].get(kind, 0):,}" for kind in kinds),
                    f"{first['cost']['partitions_fetched']:,}",
                    spread([run["load"] for run in found]),
                )
            )
        )
    text = [
        "# S3: what a star join costs there, and how many requests",
        "",
        "Median seconds, with the range and the number of runs. Warm: one session, every contender "
        "run before, Spark's cached listings dropped before each run. Cold: a fresh JVM, whose "
        "start is not counted in seconds, but in requests. *Times as fast* is against Spark with "
        "every switch on. The server is moto's, in the benchmark's process, which needs some "
        "milliseconds a request itself; *ms a request* are added to that. *Load* is the machine's, "
        "of one minute, when a run begins: above its number of cores, other work slows all "
        "contenders, and most of all those that wait least for the server.",
        "",
        *lines,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / "s3.md").write_text("\n".join(text) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--partitions", type=int, default=10_000)
    add("--matching", type=int, nargs="+", default=[30])
    add("--latency", type=int, nargs="+", default=[0, 5, 20], help="milliseconds a request")
    add("--cold-latency", type=int, nargs="*", default=[5], help="those of a fresh JVM")
    add("--contenders", nargs="+", choices=_CONTENDERS, default=_CONTENDERS)
    add("--repeats", type=int, default=3, help="warm runs of each contender that count")
    add("--cold-repeats", type=int, default=1)
    add("--folder", type=Path, default=FOLDER)
    add("--results", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
