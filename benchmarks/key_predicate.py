"""Are keys on a data column worth their cost, and does the rule know when?

    python -m benchmarks.key_predicate --rows 20000000 --repeats 3

Joins a large table with a small one by a column that is not a partition column. The files of the
large table are clustered by that column or not. Three contenders run in turn, warm. The first is
plain Spark. The second is ours with ``key_predicate``, including key query
and footers. The third has the keys as literals, and Parquet gets the whole IN list. Results go to
``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from matplotlib import pyplot
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.session_conf import conf_set
from benchmarks.contenders import FLOOR, OURS, SPARK
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread
from tests.spark.stages import join, prune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENDERS = (SPARK, OURS, FLOOR)
TABLES = ("clustered Parquet", "shuffled Parquet", "clustered ORC")
# The keys that the small table selects, as a condition on the key; k is a column of ``keys`` keys.
PICKS = {
    "20 together": "k BETWEEN 4000 AND 4019",
    "20 scattered": "k % ({keys} DIV 20) = 7",
    "200 scattered": "k % ({keys} DIV 200) = 7",
    "2,000 together": "k BETWEEN 4000 AND 5999",
    "2,000 scattered": "k % ({keys} DIV 2000) = 7",
}
# Spark gives Parquet a list as a chain of ORs; 2,000 values overflow the stack.
_WHOLE_LIST = {"spark.sql.parquet.pushdown.inFilterThreshold": "500"}


def main() -> None:
    """Builds the tables, runs the contenders, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    runs: list[Record] = []
    with tempfile.TemporaryDirectory() as scratch:
        conf = {
            **embedded_conf(Path(scratch) / "warehouse", "local[2]"),
            "spark.driver.memory": "3g",
            "spark.sql.shuffle.partitions": "4",
        }
        with quiet_session("key predicate", conf) as session:
            build(session, chosen.rows)
            for table in TABLES:
                for pick in PICKS:
                    runs += compare(session, table, pick, chosen, Path(scratch))
    write(runs, asdict(Machine()), chosen.rows, chosen.results)


def build(session: SparkSession, rows: int) -> None:
    """Three large tables with the same rows, ten for each key, and one with a row for each key."""
    frame = session.range(rows).selectExpr(
        "id DIV 10 AS k", "id AS amount", "xxhash64(id) AS a", "sha1(CAST(id AS STRING)) AS text"
    )
    clustered = frame.repartitionByRange(8, "k").sortWithinPartitions("k")
    clustered.write.saveAsTable("clustered_parquet")
    clustered.write.format("orc").saveAsTable("clustered_orc")
    frame.repartition(8, "a").sortWithinPartitions("a").write.saveAsTable("shuffled_parquet")
    keys = session.range(rows // 10).selectExpr("id AS k", "CAST(id % 7 AS INT) AS kind")
    keys.coalesce(1).write.saveAsTable("small")


def compare(
    session: SparkSession,
    table: str,
    pick: str,
    chosen: argparse.Namespace,
    scratch: Path,
) -> list[Record]:
    """The contenders' runs, without the first round; raises ``AssertionError`` if rows differ."""
    condition = PICKS[pick].format(keys=chosen.rows // 10)
    picked = [row[0] for row in session.sql(f"SELECT k FROM small WHERE {condition}").collect()]
    name = table.lower().replace(" ", "_")
    # a form from which Spark can't infer the same filter for the large table
    hidden = condition.replace("k ", "s.k * (1 + 0 * s.kind) ")
    sql = (
        f"SELECT count(*), sum(b.amount), max(b.text) FROM {name} b JOIN small s ON b.k = s.k "
        f"WHERE {hidden}"
    )
    listed = f"{sql} AND b.k IN ({', '.join(map(str, picked))})"
    runs, expected = [], None
    for round_ in range(chosen.repeats + 1):
        for contender in CONTENDERS:
            used: dict[str, object] = {}

            def action(contender: str = contender, used: dict[str, object] = used) -> object:
                if contender == OURS:
                    return _ours(session, sql, scratch, used)
                with conf_set(session, _WHOLE_LIST if contender == FLOOR else {}):
                    text = listed if contender == FLOOR else sql
                    return [tuple(row) for row in session.sql(text).collect()]

            began = time.monotonic()
            rows = action()
            seconds = time.monotonic() - began
            if expected not in (None, rows):
                raise AssertionError(f"{contender} gives {rows}, not {expected}: {sql}")
            expected = rows
            if round_:
                run = {"table": table, "pick": pick, "contender": contender, **used}
                runs.append({**run, "seconds": seconds, "noise": noise()})
    return runs


def _ours(session: SparkSession, sql: str, scratch: Path, used: dict[str, object]) -> object:
    job = Job(sql, switches={"key_predicate": True})
    path = UPath(scratch / "descriptor.json")
    pruned = prune(session, job, path)
    filters = pruned.descriptor.row_filters
    used["used"] = ("range" if filters[0].is_range else "list") if filters else "no"
    return list(join(session, job, pruned, path).rows)


def write(runs: list[Record], machine: Record, rows: int, folder: Path) -> None:
    """Writes ``key_predicate.json``, ``.md`` and ``.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = json.dumps({"machine": machine, "runs": runs}, indent=1)
    (folder / "key_predicate.json").write_text(document)
    lines = ["| files | keys | condition | plain, s | ours, s | list by hand, s | plain / ours |"]
    lines.append("|---|---|---|---:|---:|---:|---:|")
    ratios: dict[str, list[float]] = {}
    for table in TABLES:
        for pick in PICKS:
            seconds = {
                contender: [
                    run["seconds"]
                    for run in runs
                    if (run["table"], run["pick"], run["contender"]) == (table, pick, contender)
                ]
                for contender in CONTENDERS
            }
            used = next(
                r["used"] for r in runs if (r["table"], r["pick"]) == (table, pick) and "used" in r
            )
            ratio = median(seconds[SPARK]) / median(seconds[OURS])
            ratios.setdefault(table, []).append(ratio)
            cells = (table, pick, used, *(spread(seconds[c]) for c in CONTENDERS), f"{ratio:.2f}")
            lines.append(f"| {' | '.join(cells)} |")
    text = [
        f"# Keys as a condition on a data column, {rows:,} rows",
        "",
        "Median seconds in a warm session, with the range and the number of runs; ours with key "
        "query and footers. *condition*: what the rule made of the keys.",
        "",
        *lines,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / "key_predicate.md").write_text("\n".join(text) + "\n")
    figure, axis = pyplot.subplots(figsize=(8, 4.5))
    for table, found in ratios.items():
        axis.plot(list(PICKS), found, "o-", label=table)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set(yscale="log", ylabel="plain seconds / ours", title="Keys on a data column")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "key_predicate.png", dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
