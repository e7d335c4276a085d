"""A join by order number with a Delta table by day, with a key index and without.

    make bench-key-index-join
    make bench-key-index-join ARGUMENTS="--files 1000 --rows 10000 --repeats 7"

Each day is a partition with one file. The order's number says nothing of its day. 500 wanted orders
are in 20 days. Three contenders run in turn, warm: Spark with dynamic pruning and run-time filters
on; ours with its key query and lookup; the 20 days written by hand as literals. The rows are
compared in the first round, which does not count. Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from upath import UPath

from airflow_hive_opt.spark.session.session_conf import conf_set
from benchmarks.contenders import FLOOR, OURS, SWITCHED
from benchmarks.lake_tables import Delta, Ran
from benchmarks.lakes import RUNTIME_FILTERS
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread, table_row
from tests.lakes.delta.indexes import build_index
from tests.spark.stages import job_of, join, prune, reported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENDERS = (SWITCHED, OURS, FLOOR)
KEYS, TOUCHED = 500, 20
_DAYS_AT_ONCE = 1_000
_JOIN = (
    "SELECT o.day, count(*) AS n, sum(o.amount) AS amount FROM bench.{table} o "
    "JOIN bench.wanted w ON o.order_id = w.order_id{days} GROUP BY o.day"
)


def main() -> None:
    """Builds the table and its index, runs the contenders, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000], help="of each file")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="keeps the tables for another run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    runs: list[Record] = []
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        conf = Delta().conf(chosen.folder or place)
        with quiet_session("key index", conf) as spark:
            spark.sql("CREATE DATABASE IF NOT EXISTS bench")
            for files, rows in zip(chosen.files, chosen.rows, strict=True):
                name = _table(spark, files, rows)
                days = _wanted(spark, name, files)
                setting = {"table_files": files, "rows": rows}
                for run in _compare(spark, place, name, days, setting, chosen.repeats):
                    runs.append(run)
                    _write(runs, asdict(Machine()), chosen.results)


def _table(session: SparkSession, files: int, rows: int) -> str:
    name = f"orders_{files}_{rows}"
    if session.catalog.tableExists(f"bench.{name}"):
        return name
    session.sql(
        f"CREATE TABLE bench.{name} (order_id bigint, customer bigint, amount decimal(12, 2), "
        "status string, day int) USING delta PARTITIONED BY (day)"
    )
    for first in range(0, files, _DAYS_AT_ONCE):
        ids = first * rows, min(first + _DAYS_AT_ONCE, files) * rows
        session.sql(
            f"INSERT INTO bench.{name} SELECT /*+ REPARTITION(4, day) */ * FROM (SELECT "
            "(id * 2654435761) % 1099511627776, id % 99991, id % 9973, "
            f"sha1(CAST(id AS string)), CAST(id DIV {rows} AS int) AS day "
            f"FROM range({ids[0]}, {ids[1]}))"
        )
    return name


def _wanted(session: SparkSession, name: str, files: int) -> str:
    """Makes the wanted orders; returns their days as a list in SQL."""
    days = ", ".join(map(str, sorted(random.Random(41).sample(range(files), TOUCHED))))
    session.sql(
        "CREATE OR REPLACE TABLE bench.wanted USING delta AS SELECT order_id "
        "FROM (SELECT *, row_number() OVER (PARTITION BY day ORDER BY order_id) AS n "
        f"FROM bench.{name} WHERE day IN ({days})) WHERE n <= {KEYS // TOUCHED}"
    )
    return days


def _compare(
    session: SparkSession, scratch: Path, name: str, days: str, setting: Record, repeats: int
) -> Iterator[Record]:
    """The contenders' runs after a first round, in which the rows are compared."""
    root, expected = UPath(scratch / "indexes"), None
    began = time.monotonic()
    built = build_index(session, root, f"bench.{name}", "order_id")
    index = {"build": time.monotonic() - began, "bytes_per_key": built.bytes / built.keys}
    for round_ in range(repeats + 1):
        for at in range(len(CONTENDERS)):
            contender = CONTENDERS[(at + round_) % len(CONTENDERS)]
            sql = _JOIN.format(
                table=name, days=f" AND o.day IN ({days})" if contender == FLOOR else ""
            )
            busy = noise()
            seconds: list[float] = []

            def run(contender: str = contender, sql: str = sql, own: list[float] = seconds) -> Ran:
                began = time.monotonic()
                ran = _run(session, scratch, root, contender, sql)
                own.append(time.monotonic() - began)
                return ran

            rows, counts = Delta().counted(session, name, run)
            if not round_:
                assert expected in (None, sorted(rows)), f"{contender}: {rows}, not {expected}"
                expected = sorted(rows)
                continue
            found = {**setting, **index, "contender": contender, "seconds": seconds[0]}
            yield {**found, "noise": busy, **counts}
            print(f"{setting} {contender}: {seconds[0]:.2f} s", flush=True)


def _run(session: SparkSession, scratch: Path, root: UPath, contender: str, sql: str) -> Ran:
    with conf_set(session, RUNTIME_FILTERS):
        if contender != OURS:
            frame = session.sql(sql)
            return [tuple(row) for row in frame.collect()], lambda: None
        path = UPath(scratch / "descriptor.json")
        job = job_of(sql, show_rows=100, index_path=str(root))
        pruned = prune(session, job, path, hand_over=False)
        result = join(session, job, pruned, path)
    uses = reported(session, job, result).descriptor.index_uses
    assert [use.code for use in uses] == ["USED"], uses
    return list(result.rows), lambda: None


def _write(runs: list[Record], machine: Record, folder: Path) -> None:
    """Writes ``key_index_join.json`` and ``.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key_index_join.json").write_text(
        json.dumps({"machine": machine, "runs": runs}, indent=1)
    )
    head = ("files", "rows of each", "contender", "seconds", "Spark / it", "files read")
    lines = [table_row(head), table_row("---" if at == 2 else "---:" for at in range(len(head)))]
    groups: dict[tuple[Any, ...], dict[str, list[Record]]] = {}
    for run in runs:
        key = run["table_files"], run["rows"]
        groups.setdefault(key, {}).setdefault(run["contender"], []).append(run)
    indexes = []
    for (files, rows), found in groups.items():
        middle = {name: median(each["seconds"] for each in own) for name, own in found.items()}
        for contender, own in found.items():
            faster = middle.get(SWITCHED, float("nan")) / middle[contender]
            cells = (
                *(f"{files:,}", f"{rows:,}", contender),
                *(spread([each["seconds"] for each in own]), f"{faster:.2f}"),
                f"{own[0]['files']:,}",
            )
            lines.append(table_row(cells))
        any_ = next(iter(found.values()))[0]
        indexes.append(
            f"- {files:,} files: built in {any_['build']:.1f} s, "
            f"{any_['bytes_per_key']:.2f} bytes a key"
        )
    text = [
        "# A join by order number with a Delta table, with a key index",
        "",
        f"{KEYS:,} wanted orders in {TOUCHED} days. Median seconds in a warm session, with the "
        "range and the number of runs; ours with its key query and lookup. Each day is a partition "
        "with one file. The rows were equal.",
        "",
        *lines,
        "",
        "The index:",
        "",
        *indexes,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / "key_index_join.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
