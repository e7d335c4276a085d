"""What do five statements over the same days cost, with a key set and each for itself?

    python -m benchmarks.key_sets --repeats 7

One warm local session. The days are a small Parquet table, a text table of the rows and columns of
TPC-DS's date_dim, and one of the largest text tables that still count as small. The five statements
run one after the other: their local tasks alone, and with their joins. With a key set, the first of
the five reads the keys, and each round has a new key set.

Contenders take turns. The first round does not count. Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Machine, cpu_clock, noise, quiet_session
from benchmarks.overhead import conf, context
from benchmarks.report import RESULTS, Record, about, spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 1_000
TABLES = {"days": 1_000, "date_dim": 73_049, "hours": 130_000}
"""The tables of days with their numbers of rows; all but the first are text."""
SHARED, ALONE = "a key set", "each for itself"
FORMS = ("local tasks", "whole statements")
KEPT = 30
_FIVE = (
    "SELECT count(*) AS n FROM sales s JOIN {days} d ON s.ds = d.ds WHERE d.month = 3",
    "SELECT sum(s.amount) AS n FROM sales s JOIN {days} d ON s.ds = d.ds WHERE d.month = 3",
    "SELECT max(s.item) AS n FROM sales s JOIN {days} d ON s.ds = d.ds WHERE d.month = 3",
    "SELECT s.amount, count(*) AS n FROM sales s JOIN {days} d ON s.ds = d.ds WHERE d.month = 3 "
    "GROUP BY s.amount",
    "SELECT d.ds, count(*) AS n FROM sales s JOIN {days} d ON s.ds = d.ds WHERE d.month = 3 "
    "GROUP BY d.ds",
)


def main() -> None:
    """Runs both contenders on both tables and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["AIRFLOW_HOME"] = str(folder / "airflow")
        os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "False"
        with quiet_session("key sets", conf(folder, "local[2]")) as session:
            build(session, folder)
            runs = measured(session, folder, chosen.repeats)
    loads = [load, os.getloadavg()[0]]
    write(runs, {**asdict(Machine()), "load": loads}, chosen.results)


def build(session: SparkSession, folder: Path) -> None:
    """Sales of 1,000 days, one partition for each, and two tables of days, all of them old."""
    rows = session.range(DAYS * 10).selectExpr(
        "id AS item", "id % 7 AS amount", f"CAST(id % {DAYS} AS INT) ds"
    )
    rows.repartition(2, "ds").write.partitionBy("ds").saveAsTable("sales")
    day = ("CAST(id AS INT) ds", "CAST(id DIV 30 AS INT) month")
    session.range(TABLES["days"]).selectExpr(*day).coalesce(1).write.saveAsTable("days")
    more = [f"concat('text ', id % {at + 2}) AS t{at}" for at in range(14)]
    more += [f"CAST(id + {at} AS INT) AS n{at}" for at in range(12)]
    for name in ("date_dim", "hours"):
        rows = session.range(TABLES[name]).selectExpr(*day, *more).coalesce(1)
        rows.createOrReplaceTempView("made")
        session.sql(f"CREATE TABLE {name} STORED AS TEXTFILE AS SELECT * FROM made")
    for file in (folder / "warehouse").rglob("*"):
        if file.is_file():
            changed = file.stat().st_mtime - 100
            os.utime(file, (changed, changed))


def measured(session: SparkSession, folder: Path, repeats: int) -> list[Record]:
    """All runs; raises ``AssertionError`` if one keeps other partitions or runs other queries."""
    cpu_seconds, runs = cpu_clock(session), []
    with counted() as asked:
        for table in TABLES:
            for form in FORMS:
                for round_ in range(repeats + 1):
                    for name in (SHARED, ALONE):
                        before = len(asked)
                        key_sets = f"{table} {form} {round_}" if name == SHARED else None

                        cpu, began = cpu_seconds(), time.monotonic()
                        for sql in _FIVE:
                            execute(sql.format(days=table), folder, form, key_sets)
                        run: Record = {"table": table, "form": form, "contender": name}
                        run |= {"seconds": time.monotonic() - began}
                        run |= {"cpu_seconds": cpu_seconds() - cpu, "noise": noise()}
                        queries = len(asked) - before
                        if queries != (1 if name == SHARED else len(_FIVE)):
                            raise AssertionError(f"{queries} key queries with {name}")
                        if round_:
                            runs.append(run | {"queries": queries})
    return runs


def execute(sql: str, folder: Path, form: str, key_sets: str | None) -> None:
    """Runs the operator as a task does."""
    from airflow_hive_opt.operators.local_task import LocalTaskOperator
    from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

    operator = LocalTaskOperator if form == FORMS[0] else MapJoinPruneOperator
    task = operator(
        task_id="t", sql=sql, descriptor_path=str(folder), local_task="spark", key_sets=key_sets
    )
    summary = task.execute(context("t"))
    if summary["kept"] != KEPT:
        raise AssertionError(f"{summary['kept']} partitions kept, not {KEPT}")


@contextmanager
def counted() -> Iterator[list[str]]:
    """The names of the sources whose key queries run."""
    from airflow_hive_opt.spark.keys.key_query import KeyQuery

    asked: list[str] = []
    real = KeyQuery.run

    def run(query: KeyQuery) -> Any:
        asked.append(query.source.name)
        return real(query)

    KeyQuery.run = run  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        KeyQuery.run = real  # type: ignore[method-assign]


def write(runs: list[Record], machine: Record, folder: Path) -> None:
    """Writes ``key_sets.json`` and ``key_sets.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key_sets.json").write_text(json.dumps({"machine": machine, "runs": runs}, indent=1))
    lines = [
        "| days | five | keys | key queries | seconds | CPU s |",
        "|---|---|---|---:|---:|---:|",
    ]
    ratios = []
    for table in TABLES:
        for form in FORMS:
            of = {
                name: [
                    run
                    for run in runs
                    if (run["table"], run["form"], run["contender"]) == (table, form, name)
                ]
                for name in (ALONE, SHARED)
            }
            for name, found in of.items():
                lines.append(
                    f"| {table} | {form} | {name} | {found[0]['queries']} | "
                    f"{spread([run['seconds'] for run in found])} | "
                    f"{spread([run['cpu_seconds'] for run in found])} |"
                )
            times = {
                unit: median(run[unit] for run in of[ALONE])
                / median(run[unit] for run in of[SHARED])
                for unit in ("seconds", "cpu_seconds")
            }
            ratios.append(
                f"{table}, {form}: {times['seconds']:.2f} times as fast, "
                f"{times['cpu_seconds']:.2f} times by CPU seconds"
            )
    before, after = machine["load"]
    text = [
        "# Five statements over the same days, with a key set and without",
        "",
        f"Star joins that need {KEPT} of {DAYS:,} partitions, one after the other in one warm "
        f"session, median with the range and the number of runs. `days` is a Parquet table of "
        f"{TABLES['days']:,} rows; `date_dim` and `hours` are text tables of 28 columns with "
        f"{TABLES['date_dim']:,} and {TABLES['hours']:,} rows. The time is that of the operators' "
        "`execute`.",
        "",
        *lines,
        "",
        *(f"- {ratio}" for ratio in ratios),
        "",
        *about(machine, [run["noise"] for run in runs]),
        f"- load of the machine: {before:.1f} before, {after:.1f} after",
    ]
    (folder / "key_sets.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
