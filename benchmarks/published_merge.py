"""Iceberg: the MERGE of apache/iceberg 5909, in small.

    make bench-published-merge
    make bench-published-merge ARGUMENTS="--partitions 18000 --touched 5000 --repeats 1"

The reported table has 18,000 partitions with 457,000,000 rows. A batch of 335,000 rows updates
5,000 of the partitions, in no order. By default a tenth of the partitions is there, and a batch has
as many rows for each partition. The results go to ``benchmarks/results``.

The reported statement casts the columns that it compares to INT. Keys are not taken from casts, and
such a statement is left whole, so here the columns are compared as they are.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from upath import UPath

from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.physical_operators import operators
from airflow_hive_opt.spark.session.session_conf import conf_set
from benchmarks.contenders import EVERY_SWITCH, FLOOR, OURS, SWITCHED
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread, table_row
from tests.lakes.jars import jars_of
from tests.spark.stages import job_of, join, prune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENDERS = (SWITCHED, OURS, FLOOR)
TABLE = "lake.bench.epayment"
MERGE = (
    "MERGE INTO {table} AS target USING (SELECT * FROM deflate_table AS deflate) AS deflate "
    "ON target._context_id_ = deflate._context_id_ AND target.id = deflate.id{contexts} "
    "WHEN MATCHED THEN UPDATE SET target.amount = CAST(IF(array_contains(deflate.changed_cols, "
    "'AMOUNT'), deflate.amount, target.amount) AS decimal(12,2)) "
    "WHEN NOT MATCHED THEN INSERT (id, _context_id_, amount, code) "
    "VALUES (deflate.id, deflate._context_id_, deflate.amount, 'new')"
)
_ROWS = 2_000  # of a partition
_CHANGED = 67  # rows of the batch for a partition


def main() -> None:
    """Builds the table, runs the contenders in turn, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_800)
    parser.add_argument("--touched", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with quiet_session("published merge", _conf(folder)) as session:
            _build(session, chosen.partitions, chosen.touched)
            runs = list(_compare(session, folder, chosen.repeats))
    _write(runs, chosen.partitions, chosen.touched, chosen.results)


def _conf(folder: Path) -> dict[str, str]:
    catalog = "spark.sql.catalog.lake"
    return {
        **embedded_conf(folder / "warehouse", "local[2]"),
        "spark.driver.memory": "4g",
        "spark.jars": jars_of("iceberg"),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": str(folder / "lake"),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }


def _build(session: SparkSession, partitions: int, touched: int) -> None:
    session.sql(
        f"CREATE TABLE {TABLE} (id bigint, _context_id_ int, amount decimal(12,2), code string) "
        "USING iceberg PARTITIONED BY (_context_id_)"
    )
    for first in range(0, partitions, 1_000):  # a writer keeps a file open for each
        last = min(first + 1_000, partitions)
        session.sql(
            f"INSERT INTO {TABLE} SELECT id, CAST(id DIV {_ROWS} AS int), id % 9973, "
            f"sha1(CAST(id AS string)) FROM range({first * _ROWS}, {last * _ROWS})"
        )
    contexts = sorted(Random(5909).sample(range(partitions), touched))
    session.createDataFrame([(each,) for each in contexts], "context int").createTempView("chosen")
    session.sql(
        f"CREATE TABLE deflate_table USING parquet AS SELECT CAST(context AS bigint) * {_ROWS} + n "
        "AS id, context AS _context_id_, CAST(n AS decimal(12,2)) AS amount, "
        f"array('AMOUNT') AS changed_cols FROM chosen LATERAL VIEW "
        f"explode(sequence(1, {_CHANGED})) x AS n"
    )


def _compare(session: SparkSession, folder: Path, repeats: int) -> Iterator[Record]:
    """The contenders' runs after a first round, in which the tables are compared."""
    rows = session.sql("SELECT DISTINCT _context_id_ FROM deflate_table").collect()
    listed = f" AND target._context_id_ IN ({', '.join(str(row[0]) for row in rows)})"
    state = session.sql(f"SELECT max(snapshot_id) FROM {TABLE}.refs").head()[0]
    expected = None
    for round_ in range(repeats + 1):
        for at in range(len(CONTENDERS)):
            contender = CONTENDERS[(at + round_) % len(CONTENDERS)]
            sql = MERGE.format(table=TABLE, contexts=listed if contender == FLOOR else "")
            busy = noise()
            began = time.monotonic()
            plan = _run(session, folder, contender, sql)
            seconds = time.monotonic() - began
            if not round_:
                content = session.sql(
                    "SELECT count(*), bit_xor(xxhash64(id, _context_id_, amount, code)) "
                    f"FROM {TABLE}"
                ).collect()
                assert expected in (None, content), f"{contender}: {content}, not {expected}"
                expected = content
            session.sql(f"CALL lake.system.rollback_to_snapshot('bench.epayment', {state})")
            if round_:
                yield {
                    **{"contender": contender, "seconds": seconds, "noise": busy},
                    **_counts(plan),
                }
                print(f"{contender}: {seconds:.2f} s", flush=True)


def _run(session: SparkSession, folder: Path, contender: str, sql: str) -> Any:
    """Runs the statement as the contender does; returns the plan that has run."""
    with conf_set(session, EVERY_SWITCH):
        if contender != OURS:
            return session.sql(sql)._jdf.queryExecution().executedPlan()
        path = UPath(folder / "descriptor.json")
        pruned = prune(session, job_of(sql), path, hand_over=False)
        return join(session, job_of(sql), pruned, path).plan()


def _counts(plan: Any) -> dict[str, int]:
    """What all scans of the plan counted, by Iceberg's metrics."""
    counts = {"files": 0, "bytes": 0}
    names = {"files": "resultDataFiles", "bytes": "totalDataFileSize"}
    for kind, operator in operators(plan):
        if kind == "BatchScanExec":
            for name, metric in names.items():
                counts[name] += int(operator.metrics().get(metric).get().value())
    return counts


def _write(runs: list[Record], partitions: int, touched: int, folder: Path) -> None:
    """Writes ``published_merge.json`` and ``published_merge.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = asdict(Machine())
    setting = {"partitions": partitions, "touched": touched}
    text = json.dumps({"machine": machine, **setting, "runs": runs}, indent=1)
    (folder / "published_merge.json").write_text(text)
    found = {name: [run for run in runs if run["contender"] == name] for name in CONTENDERS}
    middle = {name: median(run["seconds"] for run in found[name]) for name in CONTENDERS}
    head = ("contender", "seconds", "Spark / it", "it / literals", "files planned", "MB planned")
    lines = [table_row(head), table_row("---" if not at else "---:" for at in range(len(head)))]
    for name in (SWITCHED, OURS, FLOOR):
        cells = (
            *(name, spread([run["seconds"] for run in found[name]])),
            *(f"{middle[SWITCHED] / middle[name]:.2f}", f"{middle[name] / middle[FLOOR]:.2f}"),
            *(f"{found[name][0]['files']:,}", f"{found[name][0]['bytes'] / 1e6:,.1f}"),
        )
        lines.append(table_row(cells))
    report = [
        "# Iceberg: the MERGE of apache/iceberg 5909, in small",
        "",
        f"Median seconds in a warm session, with the range and the number of runs. {touched:,} of "
        f"{partitions:,} partitions, in no order; {_ROWS:,} rows a partition and {_CHANGED} of the "
        "batch, copy-on-write. A MERGE plans its target twice, so its files count twice. The "
        "tables were equal afterwards.",
        "",
        *lines,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / "published_merge.md").write_text("\n".join(report) + "\n")


if __name__ == "__main__":
    main()
