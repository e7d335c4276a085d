"""Does the cost grow with the matching partitions, or with the table?

    python -m benchmarks.growth --partitions 1000 10000 --shares 1 10 50 100 --latency 0 5

Runs one star join over tables that grow, all contenders in turn. Warm: one session, in which each
contender runs once before it counts. Cold: a fresh JVM for each run. Results go to
``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import slow_listing
from benchmarks.contenders import (
    CONTENDERS,
    Rows,
    Statement,
    check_same_rows,
    phases,
    star_join,
    warm_run,
)
from benchmarks.fresh_process import run_in_process
from benchmarks.measure import Cost, Machine, Meter, noise, quiet_session
from benchmarks.report import RESULTS, added, write_growth
from benchmarks.slow_listing import Listings
from benchmarks.warehouse import FOLDER, build, servers, session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Setting:
    """The number of partitions, how many match, and the milliseconds added to each listing."""

    partitions: int
    matching: int
    latency: int


@dataclass(frozen=True)
class Run:
    """One measured run; ``session`` is Spark's start time in seconds, for cold runs only."""

    setting: Setting
    contender: str
    start: str
    cost: Cost
    noise: float
    session: float = 0.0


def main() -> None:
    """Runs the chosen settings and writes the results."""
    chosen = _arguments()
    settings = dict.fromkeys(
        Setting(size, matching, latency)
        for latency in chosen.latency
        for size, matching in (
            *((size, chosen.matching) for size in chosen.partitions),
            *(
                (chosen.share_partitions, chosen.share_partitions * share // 100)
                for share in chosen.shares
            ),
        )
    )
    with servers(chosen.folder) as running:
        conf = {
            **session_conf(running.metastore.uri, running.metastore.warehouse),
            **slow_listing.conf(running.folder / "slow_listing"),
        }
        with quiet_session("growth", conf) as session:
            for size in sorted({setting.partitions for setting in settings}):
                build(session, running, size)
            statements = {
                setting: star_join(session, setting.partitions, setting.matching)
                for setting in settings
            }
            runs = list(_warm(session, statements, chosen))
        runs += _cold(conf, statements, chosen)
    if not runs:
        sys.exit("nothing was measured: --repeats and --cold-repeats are 0")
    records = [asdict(done) for done in runs]
    if chosen.add:
        records = added(chosen.results / "growth.json", records)
    write_growth(records, asdict(Machine()), chosen.results)


def _warm(
    session: SparkSession, statements: dict[Setting, Statement], chosen: argparse.Namespace
) -> Iterator[Run]:
    meter, listings = Meter(session), Listings(session)
    for setting, statement in statements.items():
        listings.take(setting.latency)
        answers: dict[str, Rows] = {}
        too_slow: set[str] = set()
        for turn in range(chosen.repeats + 1):
            for at in range(len(chosen.contenders)):
                contender = chosen.contenders[(at + turn) % len(chosen.contenders)]
                if contender in too_slow:
                    continue
                busy = noise()
                cost, answers[contender] = warm_run(session, meter, contender, statement)
                if cost.seconds > chosen.patience:
                    too_slow.add(contender)
                if turn or contender in too_slow:  # the first turn warms up
                    yield _said(Run(setting, contender, "warm", cost, busy))
        listings.take(0)
        check_same_rows(answers, setting)


def _cold(
    conf: dict[str, str], statements: dict[Setting, Statement], chosen: argparse.Namespace
) -> Iterator[Run]:
    """Runs every phase in its own process."""
    for setting, statement in statements.items():
        answers: dict[str, Rows] = {}
        for _ in range(chosen.cold_repeats):
            for contender in chosen.contenders:
                busy = noise()
                with tempfile.TemporaryDirectory() as scratch:
                    parts = [
                        run_in_process(
                            conf,
                            statement,
                            contender,
                            phase,
                            Path(scratch),
                            latency=setting.latency,
                        )
                        for phase in phases(contender)
                    ]
                first, *others = (part.cost for part in parts)
                cost = sum(others, first)
                answers[contender] = parts[-1].rows
                starting = sum(part.session for part in parts)
                yield _said(Run(setting, contender, "cold", cost, busy, starting))
        check_same_rows(answers, setting)


def _said(done: Run) -> Run:
    print(
        f"{done.setting.matching:>7,} of {done.setting.partitions:<7,} "
        f"{done.setting.latency} ms  {done.start}  {done.contender:<22}"
        f"{done.cost.seconds:8.2f} s{done.cost.metastore_calls:7,} calls"
        f"{done.cost.partitions_fetched:9,} partitions{done.cost.directories_listed:9,} listings",
        flush=True,
    )
    return done


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--partitions", type=int, nargs="+", default=[1_000, 5_000, 10_000, 50_000])
    add("--matching", type=int, default=10)
    add("--share-partitions", type=int, default=10_000)
    add("--shares", type=int, nargs="*", default=[1, 10, 50, 100], help="per cent that match")
    add("--latency", type=int, nargs="+", default=[0, 5], help="milliseconds a listing")
    add("--contenders", nargs="+", choices=CONTENDERS, default=CONTENDERS)
    add("--repeats", type=int, default=5, help="warm runs of each contender that count")
    add("--cold-repeats", type=int, default=3)
    add("--patience", type=float, default=45, help="seconds; a slower contender runs once")
    add("--folder", type=Path, default=FOLDER)
    add("--results", type=Path, default=RESULTS)
    add("--add", action="store_true", help="keep the earlier results, and add to them")
    return parser.parse_args()


if __name__ == "__main__":
    main()
