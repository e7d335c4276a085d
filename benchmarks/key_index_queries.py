"""TPC-DS queries that join two facts by an order's number, with key indexes and without.

    make bench-key-index-queries
    make bench-key-index-queries ARGUMENTS="--queries 40 50 --repeats 7"

The facts are Iceberg tables by day, each day with one file. Each fact has a key index of its order
or ticket number, by which sales and returns are joined. Three contenders run in turn, warm: Spark
with dynamic pruning and run-time filters on; ours without indexes; ours with them. A run of ours
knows what the run before it found out, as a scheduled task does. The rows are compared in the first
round. To compare, ours leaves its indexes out in the third, and the statement as it is in the
fourth. These four do not count. Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from upath import UPath

from airflow_hive_opt.documents.index_trial import TrialArm
from airflow_hive_opt.key_index.building import build
from airflow_hive_opt.key_index.iceberg import IcebergColumn
from airflow_hive_opt.local_task.index_trial import arm_of
from airflow_hive_opt.provider.earlier_runs import index_trial_in, skipped_keys_in
from airflow_hive_opt.spark.session.physical_operators import operators
from airflow_hive_opt.spark.session.session_conf import conf_set
from benchmarks.contenders import OURS, SWITCHED
from benchmarks.lake_tables import Iceberg
from benchmarks.lakes import RUNTIME_FILTERS
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread, table_row
from benchmarks.suites import TPCDS
from tests.lakes.iceberg.indexes import static_table
from tests.spark.stages import job_of, join, prune, reported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT = "ours, without indexes"
CONTENDERS = (SWITCHED, WITHOUT, OURS)
# The arm that a round tries, as about every tenth run of a task does.
_TRIES = {2: TrialArm.LEFT_OUT, 3: TrialArm.UNTOUCHED}
_UNCOUNTED = 4  # rounds
QUERIES = (40, 49, 50, 64, 78, 80, 85)
INDEXED = {
    "store_sales": "ss_ticket_number",
    "store_returns": "sr_ticket_number",
    "catalog_sales": "cs_order_number",
    "catalog_returns": "cr_order_number",
    "web_sales": "ws_order_number",
    "web_returns": "wr_order_number",
}


def main() -> None:
    """Loads the tables, builds their indexes, runs the contenders, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="TPC-DS as Parquet, and its queries as JSON")
    parser.add_argument("--queries", type=int, nargs="+", default=list(QUERIES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keeps the tables for another run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    texts = {
        int(n): text for n, text in json.loads((chosen.data / "queries.json").read_text()).items()
    }
    runs: list[Record] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tables = chosen.folder or folder
        with quiet_session("key index queries", Iceberg().conf(tables)) as session:
            totals = _load(session, chosen.data)
            root = UPath(folder / "indexes")
            built = _build(session, root)
            for query in chosen.queries:
                for run in _compare(session, folder, root, query, texts[query], chosen.repeats):
                    runs.append(run)
                    _write(runs, totals, built, asdict(Machine()), chosen.results)


def _load(session: SparkSession, data: Path) -> dict[str, int]:
    """Creates the tables; returns the numbers of data files of the facts."""
    session.sql("CREATE NAMESPACE IF NOT EXISTS lake.tpcds")
    for file in sorted(data.glob("*.parquet")):
        name, day = f"lake.tpcds.{file.stem}", TPCDS.partitioned.get(file.stem)
        if session.catalog.tableExists(name):
            continue
        print(f"loading {name}", flush=True)
        by = f"PARTITIONED BY ({day})" if day else ""
        session.sql(  # a writer of sorted rows keeps one file open
            f"CREATE TABLE {name} USING iceberg {by} "
            "TBLPROPERTIES ('write.spark.fanout.enabled' = 'false') "
            f"AS SELECT * FROM parquet.`{file}`"
        )
    session.sql("USE lake.tpcds")
    return {
        table: session.sql(f"SELECT count(*) FROM lake.tpcds.{table}.files").head()[0]
        for table in TPCDS.partitioned
    }


def _build(session: SparkSession, root: UPath) -> Record:
    began = time.monotonic()
    found = []
    for table, column in INDEXED.items():
        name = f"lake.tpcds.{table}"
        found.append(build(root, IcebergColumn(static_table(session, name), name, column)))
    return {
        "seconds": time.monotonic() - began,
        "keys": sum(each.keys for each in found),
        "bytes": sum(each.bytes for each in found),
    }


def _compare(
    session: SparkSession, folder: Path, root: UPath, query: int, sql: str, repeats: int
) -> Iterator[Record]:
    """The contenders' runs after a first round, in which the rows are compared."""
    known: dict[str, Record] = {WITHOUT: {}, OURS: {}}
    expected = None
    for round_ in range(_UNCOUNTED + repeats):
        for at in range(len(CONTENDERS)):
            contender = CONTENDERS[(at + round_) % len(CONTENDERS)]
            busy = noise()
            began = time.monotonic()
            if contender == SWITCHED:
                rows, plan, more = _plain(session, sql)
            else:
                index_path = str(root) if contender == OURS else ""
                if trial := known[contender].get("index_trial"):
                    known[contender]["index_trial"] = replace(trial, tries=_TRIES.get(round_))
                rows, plan, more = _ours(session, folder, sql, known[contender], index_path)
                known[contender] = more.pop("known")
            seconds = time.monotonic() - began
            if not round_:
                rows.sort(key=repr)
                assert expected in (None, rows), f"q{query}, {contender}: {rows}, not {expected}"
                expected = rows
            found = {"query": query, "round": round_, "contender": contender, "seconds": seconds}
            print(f"q{query} {contender}: {seconds:.2f} s {more}", flush=True)
            yield {**found, "noise": busy, "files": _files(plan), **more}


def _plain(session: SparkSession, sql: str) -> tuple[list[Any], Any, Record]:
    with conf_set(session, RUNTIME_FILTERS):
        frame = session.sql(sql)
        rows = [tuple(row) for row in frame.collect()]
    return rows, frame._jdf.queryExecution().executedPlan(), {}


def _ours(
    session: SparkSession, folder: Path, sql: str, known: Record, index_path: str
) -> tuple[list[Any], Any, Record]:
    path = UPath(folder / "descriptor.json")
    job = job_of(sql, show_rows=100_000, index_path=index_path, **known)
    with conf_set(session, RUNTIME_FILTERS):
        pruned = prune(session, job, path, hand_over=False)
        result = join(session, job, pruned, path)
    assert result.plan is not None
    summary = reported(session, job, result).summary()
    uses = [
        f"{use.scan.name}: {use.code}"
        for use in result.report.descriptor.index_uses
        if use.hop is not None
    ]
    found = {"skipped_keys": skipped_keys_in(summary), "index_trial": index_trial_in(summary)}
    more = {
        **{"known": found, "uses": uses, "way": arm_of(job).value},
        "trial": asdict(found["index_trial"]),
    }
    return list(result.rows), result.plan(), more


def _files(plan: Any) -> dict[str, int]:
    """The files that were read of each fact, without those that run-time filters removed."""
    found: dict[str, int] = {}
    for kind, operator in operators(plan):
        if kind == "BatchScanExec":
            table = str(operator.table().name()).rpartition(".")[2]
            if table in TPCDS.partitioned:
                read = int(operator.metrics().get("numSplits").get().value())
                found[table] = found.get(table, 0) + read
    return found


def _write(
    runs: list[Record], totals: dict[str, int], built: Record, machine: Record, folder: Path
) -> None:
    """Writes ``key_index_queries.json`` and ``.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key_index_queries.json").write_text(
        json.dumps({"machine": machine, "files": totals, "index": built, "runs": runs}, indent=1)
    )
    head = ("query", "contender", "seconds", "Spark / it", "first run", "files read", "way", "hops")
    lines = [
        table_row(head),
        table_row(("---:", "---", "---:", "---:", "---:", "---", "---", "---")),
    ]
    groups: dict[int, dict[str, list[Record]]] = {}
    for run in runs:
        groups.setdefault(run["query"], {}).setdefault(run["contender"], []).append(run)
    for query, found in groups.items():
        counted = {
            name: [run["seconds"] for run in own if run["round"] >= _UNCOUNTED]
            for name, own in found.items()
        }
        if not all(counted.values()) or len(counted) < len(CONTENDERS):
            continue
        middle = {name: median(seconds) for name, seconds in counted.items()}
        for contender in CONTENDERS:
            own = found[contender]
            files = (f"{table} {number:,}" for table, number in sorted(own[-1]["files"].items()))
            cells = (
                *(str(query), contender, spread(counted[contender])),
                *(f"{middle[SWITCHED] / middle[contender]:.2f}", f"{own[0]['seconds']:.2f}"),
                *(", ".join(files), own[-1].get("way", "")),
                ", ".join(own[-1].get("uses", ())),
            )
            lines.append(table_row(cells))
    sizes = ", ".join(f"{table} {number:,}" for table, number in totals.items())
    text = [
        "# TPC-DS queries, with key indexes",
        "",
        "Median seconds in a warm session, with the range and the number of runs; ours with its "
        "key queries, lookups and report. Files and hops are those of the last run. The first run "
        "does not know yet which keys are of no use; the third and fourth go the other ways to "
        "compare. The first four are not among the others. The rows were equal.",
        "",
        *lines,
        "",
        f"- data files: {sizes}",
        f"- six indexes of {built['keys']:,} keys, {built['bytes'] / built['keys']:.2f} bytes a "
        f"key, built in {built['seconds']:.1f} s",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / "key_index_queries.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
