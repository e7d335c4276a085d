"""A MERGE by order number into an Iceberg table by day, with a key index and without.

    make bench-key-index-merge
    make bench-key-index-merge ARGUMENTS="--files 1000 --rows 10000 --repeats 7"

Each day is a partition with one file. The order's number says nothing of its day. 5,000 changed
orders are in 20 days. Three contenders run in turn, warm: Spark with dynamic pruning, run-time
filters and row-level group filters on; ours with its key query, lookup and branch; the 20 days
written by hand as literals. After each MERGE of ours, the index is brought up to date with its
files. Then the table is set back to its first version, and the index too. Results go to
``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pyiceberg.table import StaticTable
from upath import UPath

from airflow_hive_opt.key_index.building import build
from airflow_hive_opt.key_index.iceberg import IcebergColumn
from airflow_hive_opt.key_index.manifest import read_index
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.session.session_conf import conf_set
from benchmarks.contenders import FLOOR, OURS, SWITCHED
from benchmarks.lake_tables import Iceberg, Ran
from benchmarks.lakes import RUNTIME_FILTERS
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread, table_row
from tests.spark.stages import job_of, join, prune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENDERS = (SWITCHED, OURS, FLOOR)
KEYS, TOUCHED = 5_000, 20
MODES = ("copy-on-write", "merge-on-read")
_DAYS_AT_ONCE = 1_000
_MERGE = (
    "MERGE INTO {table} t USING lake.bench.changes c ON t.order_id = c.order_id{days} "
    "WHEN MATCHED THEN UPDATE SET amount = c.amount "
    "WHEN NOT MATCHED THEN INSERT (order_id, customer, amount, status, day) "
    "VALUES (c.order_id, 0, c.amount, 'new', 0)"
)


def main() -> None:
    """Builds the table and its index, runs the contenders, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000], help="of each file")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keeps the tables for another run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    runs: list[Record] = []
    tables = Iceberg()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        with quiet_session("key index", tables.conf(folder)) as session:
            session.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
            for files, rows in zip(chosen.files, chosen.rows, strict=True):
                name = _table(session, files, rows)
                days = _changes(session, name, files)
                for mode in MODES:
                    setting = {"table_files": files, "rows": rows, "mode": mode}
                    place = Path(scratch)
                    for run in _compare(session, place, name, days, setting, chosen.repeats):
                        runs.append(run)
                        _write(runs, asdict(Machine()), chosen.results)


def _table(session: SparkSession, files: int, rows: int) -> str:
    name = f"lake.bench.orders_{files}_{rows}"
    if session.catalog.tableExists(name):
        return name
    session.sql(
        f"CREATE TABLE {name} (order_id bigint, customer bigint, amount decimal(12, 2), "
        "status string, day int) USING iceberg PARTITIONED BY (day) "
        "TBLPROPERTIES ('format-version' = '2')"
    )
    for first in range(0, files, _DAYS_AT_ONCE):
        ids = first * rows, min(first + _DAYS_AT_ONCE, files) * rows
        session.sql(
            f"INSERT INTO {name} SELECT (id * 2654435761) % 1099511627776, id % 99991, id % 9973, "
            f"sha1(CAST(id AS string)), CAST(id DIV {rows} AS int) FROM range({ids[0]}, {ids[1]})"
        )
    return name


def _changes(session: SparkSession, name: str, files: int) -> str:
    """Makes the changed orders; returns their days as a list in SQL."""
    days = ", ".join(map(str, sorted(random.Random(41).sample(range(files), TOUCHED))))
    session.sql("DROP TABLE IF EXISTS lake.bench.changes")
    session.sql(
        "CREATE TABLE lake.bench.changes USING iceberg AS SELECT order_id, amount + 1 AS amount "
        "FROM (SELECT *, row_number() OVER (PARTITION BY day ORDER BY order_id) AS n "
        f"FROM {name} WHERE day IN ({days})) WHERE n <= {KEYS // TOUCHED}"
    )
    return days


def _compare(
    session: SparkSession, scratch: Path, name: str, days: str, setting: Record, repeats: int
) -> Iterator[Record]:
    """The contenders' runs after a first round, in which the tables are compared."""
    tables, short, root = Iceberg(), name.rpartition(".")[2], UPath(scratch / "indexes")
    mode = setting["mode"]
    session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.merge.mode' = '{mode}')")
    state = tables.state(session, short)
    built = _build(session, root, name)
    expected = None
    for round_ in range(repeats + 1):
        for at in range(len(CONTENDERS)):
            contender = CONTENDERS[(at + round_) % len(CONTENDERS)]
            sql = _MERGE.format(
                table=name, days=f" AND t.day IN ({days})" if contender == FLOOR else ""
            )
            busy, seconds = noise(), []

            def run(contender: str = contender, sql: str = sql, taken: Any = seconds) -> Ran:
                began = time.monotonic()
                ran = _run(session, scratch, root, contender, sql)
                taken.append(time.monotonic() - began)
                return ran

            _, counts = tables.counted(session, short, run)
            found = {**setting, **built, "contender": contender, "seconds": seconds[0]}
            if contender == OURS:  # the files that this MERGE has written are not covered yet
                update = _build(session, root, name)
                found["update"], found["new_files"] = update["build"], update["new_files"]
            if not round_:
                sums = "count(*), bit_xor(xxhash64(order_id, amount, day)), sum(amount)"
                rows = session.sql(f"SELECT {sums} FROM {name}").collect()
                assert expected in (None, rows), f"{contender}: {rows}, not {expected}"
                expected = rows
            tables.restore(session, short, state)
            if contender == OURS:
                _build(session, root, name)  # an update follows the version that it knows
            if round_:
                yield {**found, "noise": busy, **counts}
                print(f"{setting} {contender}: {seconds[0]:.2f} s", flush=True)


def _build(session: SparkSession, root: UPath, name: str) -> Record:
    """Brings the index up to date, as the operator does."""
    loaded = load(session, Place.of(name)).table()
    began = time.monotonic()
    table = StaticTable.from_metadata(str(loaded.operations().current().metadataFileLocation()))
    column = IcebergColumn(table, name, "order_id")
    built = build(root, column)
    seconds = time.monotonic() - began
    assert read_index(root, column.table_uuid, column.field_id) is not None
    return {
        "build": seconds,
        "new_files": built.new_files,
        "bytes_per_key": built.bytes / built.keys,
    }


def _run(session: SparkSession, scratch: Path, root: UPath, contender: str, sql: str) -> Ran:
    with conf_set(session, RUNTIME_FILTERS):
        if contender != OURS:
            frame = session.sql(sql)
            return [tuple(row) for row in frame.collect()], _plan_of(frame)
        path = UPath(scratch / "descriptor.json")
        job = job_of(sql, index_path=str(root))
        pruned = prune(session, job, path, hand_over=False)
        result = join(session, job, pruned, path)
    (use,) = result.report.descriptor.index_uses
    assert use.code == "USED", use
    assert result.plan is not None
    return list(result.rows), result.plan


def _plan_of(frame: Any) -> Callable[[], Any]:
    return lambda: frame._jdf.queryExecution().executedPlan()


def _write(runs: list[Record], machine: Record, folder: Path) -> None:
    """Writes ``key_index_merge.json`` and ``.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key_index_merge.json").write_text(
        json.dumps({"machine": machine, "runs": runs}, indent=1)
    )
    head = ("files", "rows of each", "mode", "contender", "seconds", "Spark / it", "files read")
    lines = [table_row(head), table_row("---" if at == 2 else "---:" for at in range(len(head)))]
    groups: dict[tuple[Any, ...], dict[str, list[Record]]] = {}
    for run in runs:
        key = run["table_files"], run["rows"], run["mode"]
        groups.setdefault(key, {}).setdefault(run["contender"], []).append(run)
    updates = []
    for (files, rows, mode), found in groups.items():
        middle = {name: median(each["seconds"] for each in own) for name, own in found.items()}
        for contender, own in found.items():
            faster = middle.get(SWITCHED, float("nan")) / middle[contender]
            cells = (
                *(f"{files:,}", f"{rows:,}", mode, contender),
                *(spread([each["seconds"] for each in own]), f"{faster:.2f}"),
                f"{own[0]['files']:,}",
            )
            lines.append(table_row(cells))
        for own in found.get(OURS, ())[:1]:
            took = spread([each["update"] for each in found[OURS]])
            updates.append(
                f"- {files:,} files, {mode}: {own['bytes_per_key']:.2f} bytes a key; an update "
                f"with the {own['new_files']} files of a MERGE took {took} s"
            )
    text = [
        "# A MERGE by order number, with a key index",
        "",
        f"{KEYS:,} changed orders in {TOUCHED} days. Median seconds in a warm session, with the "
        "range and the number of runs; ours with its key query, lookup and branch. Each day is a "
        "partition with one file. A copy-on-write MERGE plans its target twice, so its files count "
        "twice; ours once, since the index has found the files to rewrite. The tables were equal.",
        "",
        *lines,
        "",
        "The index:",
        "",
        *updates,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / "key_index_merge.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
