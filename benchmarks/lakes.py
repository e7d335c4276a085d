"""Iceberg, Delta and Hudi: a join and a MERGE that need few days of a large table.

    make bench-iceberg-3.5 bench-delta-3.5 bench-hudi-3.5
    make bench-iceberg-3.5 ARGUMENTS="--partitions 1000 --touched 5 1000 --repeats 7"

Each day is a partition with one file. Three contenders run in turn, warm: Spark with dynamic
pruning, run-time filters and row-level group filters on; ours with its key query; the days written
by hand as literals. The fourth asks for the days and then writes them, as people do in the reports
delta-io/delta 517 and 2567. After each MERGE the table is set back to its first version. Results go
to ``benchmarks/results``. Those of Delta there are of three commands: ``--partitions 1000`` with
``--rows 10000 --touched 5 1000`` and with ``--rows 100000 --touched 5``, and ``--partitions 10000
--rows 200 --touched 5``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from upath import UPath

from airflow_hive_opt.spark.session.session_conf import conf_set
from benchmarks.contenders import ASKED, EVERY_SWITCH, FLOOR, OURS, SWITCHED
from benchmarks.lake_tables import FORMATS, LakeTables, Ran
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread, table_row
from tests.lakes.jars import SPARK
from tests.spark.stages import job_of, join, prune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENDERS = (SWITCHED, OURS, ASKED, FLOOR)
RUNTIME_FILTERS = {
    **EVERY_SWITCH,
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
    "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled": "true",
}
if SPARK < "4.1":  # which has no semi-joins as run-time filters, and rejects the setting
    RUNTIME_FILTERS["spark.sql.optimizer.runtimeFilter.semiJoinReduction.enabled"] = "true"
_COUNTS = ("files", "manifests", "bytes")
_DAYS_AT_ONCE = 1_000  # a writer keeps a file open for each
STATEMENTS = {
    "join": (
        "SELECT count(*), sum(t.v), sum(c.v) FROM {table} t JOIN {changed} c ON t.day = c.day{days}"
    ),
    "MERGE": (
        "MERGE INTO {table} t USING {changed} c ON t.id = c.id AND t.day = c.day{days} "
        "WHEN MATCHED THEN UPDATE SET v = c.v "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (c.id, c.day, c.v)"
    ),
}


def main() -> None:
    """Builds the tables, runs the contenders, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=tuple(FORMATS))
    parser.add_argument("--partitions", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--touched", type=int, nargs="+", default=[5, 100])
    parser.add_argument("--rows", type=int, default=200, help="of each day")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    tables = FORMATS[chosen.format]
    runs: list[Record] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with quiet_session(tables.name, tables.conf(folder)) as session:
            session.sql(f"CREATE DATABASE IF NOT EXISTS {tables.database}")
            for partitions in chosen.partitions:
                _build(session, tables, partitions, chosen.rows)
                for touched in chosen.touched:
                    for kind in tables.kinds:
                        if touched <= partitions:
                            setting = {
                                "statement": kind,
                                "partitions": partitions,
                                "rows": chosen.rows,
                            }
                            runs += _compare(
                                session, tables, folder, setting, touched, chosen.repeats
                            )
                            _write(tables, runs, asdict(Machine()), chosen.results)


def _build(session: SparkSession, tables: LakeTables, partitions: int, rows: int) -> None:
    session.sql(
        f"CREATE TABLE {tables.database}.t{partitions} "
        f"(id bigint, v bigint, text string, day date) USING {tables.name} PARTITIONED BY (day)"
    )
    for first in range(0, partitions, _DAYS_AT_ONCE):
        ids = first * rows, min(first + _DAYS_AT_ONCE, partitions) * rows
        session.sql(
            f"INSERT INTO {tables.database}.t{partitions} "
            "SELECT id, id % 97, sha1(CAST(id AS string)), "
            f"date_add(DATE'1990-01-01', CAST(id DIV {rows} AS int)) FROM range({ids[0]}, {ids[1]})"
        )


def _changed(session: SparkSession, partitions: int, touched: int, rows: int) -> list[str]:
    """Makes the small table, with rows of ``touched`` spread days; returns the days."""
    session.sql("DROP TABLE IF EXISTS changed")
    every = partitions // touched
    session.sql(
        "CREATE TABLE changed USING parquet AS SELECT /*+ COALESCE(1) */ "
        f"id * {every * rows} + twice AS id, "
        f"date_add(DATE'1990-01-01', CAST(id * {every} AS int)) AS day, 1000 + id AS v "
        f"FROM range({touched}) LATERAL VIEW explode(array(0, 1)) x AS twice"
    )
    days = session.sql("SELECT DISTINCT day FROM changed").collect()
    return [row[0].isoformat() for row in days]


def _compare(
    session: SparkSession,
    tables: LakeTables,
    folder: Path,
    setting: Record,
    touched: int,
    repeats: int,
) -> Iterator[Record]:
    """The contenders' runs after a first round, in which the rows are compared."""
    kind, partitions = setting["statement"], setting["partitions"]
    table = f"t{partitions}"
    days = _changed(session, partitions, touched, setting["rows"])
    dates = ", ".join(f"DATE'{day}'" for day in days)
    listed = f" AND t.day IN ({dates})"
    texts = {
        contender: STATEMENTS[kind].format(
            table=f"{tables.database}.{table}",
            changed="changed",
            days=listed if contender in (FLOOR, ASKED) else "",
        )
        for contender in CONTENDERS
    }
    state = tables.state(session, table)
    expected = None
    skipped_keys: dict[str, int] = {}
    for round_ in range(repeats + 1):
        for at in range(len(CONTENDERS)):
            contender = CONTENDERS[(at + round_) % len(CONTENDERS)]
            busy = noise()
            sql = texts[contender]
            seconds: list[float] = []

            def run(
                contender: str = contender, sql: str = sql, taken: list[float] = seconds
            ) -> Ran:
                began = time.monotonic()
                ran = _run(session, folder, contender, sql, skipped_keys)
                taken.append(time.monotonic() - began)
                return ran

            rows, counts = tables.counted(session, table, run)
            if kind == "MERGE":
                rows = [] if round_ else _content(session, f"{tables.database}.{table}")
                tables.restore(session, table, state)
            if not round_:
                assert expected in (None, rows), f"{contender}: {rows}, not {expected}"
                expected = rows
                continue
            found = {**setting, "touched": touched, "contender": contender, "seconds": seconds[0]}
            yield {**found, "noise": busy, **counts}
            print(f"{kind} {partitions} {touched} {contender}: {seconds[0]:.2f} s", flush=True)


def _run(
    session: SparkSession, folder: Path, contender: str, sql: str, skipped_keys: dict[str, int]
) -> Ran:
    if contender != OURS:
        if contender == ASKED:
            session.sql("SELECT DISTINCT day FROM changed").collect()
        with conf_set(session, RUNTIME_FILTERS):
            frame = session.sql(sql)
            rows = [tuple(row) for row in frame.collect()]
        return rows, lambda: frame._jdf.queryExecution().executedPlan()
    path = UPath(folder / "descriptor.json")
    job = job_of(sql, skipped_keys=skipped_keys)  # as a scheduled task knows it from the run before
    with conf_set(session, RUNTIME_FILTERS):
        pruned = prune(session, job, path, hand_over=False)
        result = join(session, job, pruned, path)
    questions = (found.skipped_keys for found in pruned.descriptor.decisions)
    skipped_keys.update({found.digest: 0 for found in questions if found is not None})
    return list(result.rows), result.plan


def _content(session: SparkSession, table: str) -> list[tuple[Any, ...]]:
    sums = "count(*), bit_xor(xxhash64(id, day, v, text)), sum(v)"
    return [tuple(row) for row in session.sql(f"SELECT {sums} FROM {table}").collect()]


def _write(tables: LakeTables, runs: list[Record], machine: Record, folder: Path) -> None:
    """Writes the format's ``.json`` and ``.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tables.name}.json").write_text(
        json.dumps({"machine": machine, "runs": runs}, indent=1)
    )
    head = (
        *("statement", "partitions", "rows of each", "days", "contender"),
        *("seconds", "Spark / it", "it / literals"),
        *(name for name in _COUNTS if name in runs[0]),
    )
    lines = [table_row(head), table_row("---" if at < 5 else "---:" for at in range(len(head)))]
    groups: dict[tuple[str, int, int, int], dict[str, list[Record]]] = {}
    for run in runs:
        key = (run["statement"], run["partitions"], run["rows"], run["touched"])
        groups.setdefault(key, {}).setdefault(run["contender"], []).append(run)
    for (kind, partitions, rows, touched), found in groups.items():
        middle = {name: median(run["seconds"] for run in found[name]) for name in CONTENDERS}
        for contender in CONTENDERS:
            own = found[contender]
            cells = (
                *(kind, f"{partitions:,}", f"{rows:,}", f"{touched:,}", contender),
                spread([run["seconds"] for run in own]),
                f"{middle[SWITCHED] / middle[contender]:.2f}",
                f"{middle[contender] / middle[FLOOR]:.2f}",
                *(f"{own[0][name]:,}" for name in _COUNTS if name in own[0]),
            )
            lines.append(table_row(cells))
    text = [
        f"# {tables.name.title()}: few days of a large table",
        "",
        f"Median seconds in a warm session, with the range and the number of runs; ours with its "
        f"key query. Each day is a partition with one file, {tables.about}. The rows were equal.",
        "",
        *lines,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / f"{tables.name}.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
