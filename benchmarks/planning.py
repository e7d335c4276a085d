"""How long does the planning of long statements take, and how does it grow with their length?

    python -m benchmarks.planning --repeats 3

Statements of several shapes, of 1, 10 and 100 kB and of a number of parts. Two contenders take
turns in one warm session: the local task, and Spark's own analysis of the plain statement. The
planning is the local task without its waits for the keys and the metastore. The first run of each
contender does not count. Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.spark.catalog.remote_metastore import PartitionsOf
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.local_task import engine
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread, table_row
from tests.long_statements import SHAPES
from tests.spark.stages import prune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN, PLANNING, LOCAL_TASK = "Spark's analysis", "planning", "local task"
LENGTHS = (1_000, 10_000, 100_000)  # characters
PASSED_THROUGH = ("PASSED_THROUGH", "PLANNING_TOO_LONG")
# Spark's analysis of more parts takes minutes, or ends with a full stack.
_MOST_FOR_SPARK = {
    "joins": 500,
    "EXISTS": 500,
    "nested IN": 100,
    "nested parentheses": 5_000,
    "chain of CTEs": 200,
}
# Where the local task waits for keys and for the metastore.
_WAITS = (
    (engine, "run_alone"),
    (engine, "run_together"),
    (PartitionsOf, "partition_count"),
    (PartitionsOf, "partition_names"),
    (PartitionsOf, "partitions_by_keys"),
    (SparkCatalog, "table"),
    (SparkCatalog, "look_up_together"),
)


@dataclass(frozen=True)
class Case:
    """A statement of ``parts`` parts of a shape; ``label`` says which one of the shape it is."""

    shape: str
    label: str
    parts: int

    @property
    def sql(self) -> str:
        """The statement."""
        return SHAPES[self.shape][0](self.parts)


def main() -> None:
    """Builds the tables, runs the contenders, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--patience", type=float, default=60, help="seconds; then it runs once")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    logging.getLogger("airflow_hive_opt").setLevel(logging.ERROR)
    runs: list[Record] = []
    with tempfile.TemporaryDirectory() as scratch:
        conf = embedded_conf(Path(scratch) / "warehouse", "local[2]")
        conf["spark.sql.shuffle.partitions"] = "2"
        with quiet_session("planning", conf) as session:
            build(session)
            for _ in range(3):
                alternated(session, Case("IN list", "warm-up", 3), 1, 0, Path(scratch))
            for shape in chosen.shapes:
                for case in cases(shape):
                    found = alternated(
                        session, case, chosen.repeats, chosen.patience, Path(scratch)
                    )
                    runs += found
                    print(*row(case, found), sep="  ", flush=True)
    write(runs, asdict(Machine()), chosen.results)


def build(session: SparkSession) -> None:
    """A fact table of 20 partitions, and a dimension with their values."""
    rows = session.range(2_000).selectExpr("id", "id AS v", "CAST(id % 20 AS INT) AS p")
    rows.repartition(2, "p").write.partitionBy("p").saveAsTable("fact")
    keys = session.range(1_000).selectExpr("CAST(id AS INT) AS k", "CAST(id % 500 AS INT) AS w")
    keys.coalesce(1).write.saveAsTable("dim")


def cases(shape: str) -> Iterator[Case]:
    """A shape's statements: by length, then of its number of parts, and of ten times as many."""
    make, parts = SHAPES[shape]
    for length in LENGTHS:
        yield Case(shape, f"{length // 1000} kB", of_length(make, length))
    for number in (parts, 10 * parts):
        yield Case(shape, f"{number:,} parts", number)


def of_length(make: Callable[[int], str], length: int) -> int:
    """The most parts, at least one, with which the statement has at most ``length`` characters."""
    low, high = 1, 2
    while len(make(high)) <= length:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if len(make(middle)) <= length else (low, middle)
    return low


def alternated(
    session: SparkSession, case: Case, repeats: int, patience: float, scratch: Path
) -> list[Record]:
    """Runs both contenders in turn; the first round counts only for one that takes too long."""
    sql, runs = case.sql, []
    contenders: dict[str, Callable[[], Record]] = {
        PLAIN: lambda: _plain(session, sql),
        LOCAL_TASK: lambda: _local_task(session, sql, scratch),
    }
    if case.parts > _MOST_FOR_SPARK.get(case.shape, case.parts):
        del contenders[PLAIN]
    for round_ in range(repeats + 1):
        for name, action in list(contenders.items()):
            busy, began = noise(), time.monotonic()
            told = action()
            seconds = time.monotonic() - began
            impatient = seconds > patience
            if impatient:
                del contenders[name]
            if round_ or impatient:
                run = {**asdict(case), "length": len(sql), "contender": name, "noise": busy}
                runs.append({**run, "seconds": seconds, **told})
    return runs


def _plain(session: SparkSession, sql: str) -> Record:
    try:
        session.newSession().sql(sql)
    except (PySparkException, Py4JJavaError) as error:  # its own limits, such as Java's stack
        return {"failed": type(error).__name__}
    return {}


def _local_task(session: SparkSession, sql: str, scratch: Path) -> Record:
    began = time.monotonic()
    with waits() as waited:
        report = prune(session.newSession(), Job(sql), UPath(scratch / "descriptor.json"))
    seconds = time.monotonic() - began
    reasons = sorted({str(decision.reason) for decision in report.descriptor.decisions})
    return {"planning": seconds - sum(waited), "reason": ", ".join(reasons)}


@contextmanager
def waits() -> Iterator[list[float]]:
    """The seconds of each wait for keys and for the metastore in the block."""
    found: list[float] = []
    waiting: list[str] = []  # a wait inside another one counts once

    def timed(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            waiting.append(name)
            began = time.monotonic()
            try:
                return real(*arguments, **named)
            finally:
                waiting.pop()
                if not waiting:
                    found.append(time.monotonic() - began)

        return call

    with ExitStack() as patches:
        for where, name in _WAITS:
            patches.enter_context(patch.object(where, name, timed(name, getattr(where, name))))
        yield found


def row(case: Case, runs: list[Record]) -> tuple[str, ...]:
    """One line of the results."""
    ours = [run for run in runs if run["contender"] == LOCAL_TASK]
    plain = [run for run in runs if run["contender"] == PLAIN]
    failed = " (fails)" if any("failed" in run for run in plain) else ""
    return (
        case.shape,
        case.label,
        f"{ours[0]['parts']:,}",
        f"{ours[0]['length'] / 1000:,.1f}",
        spread([run["planning"] for run in ours]),
        spread([run["seconds"] for run in ours]),
        spread([run["seconds"] for run in plain]) + failed if plain else "",
        f"`{ours[0]['reason']}`",
    )


def exponent(runs: list[Record], shape: str) -> float | None:
    """The slope of the planning's seconds over the length, from 10 to 100 kB, both as logarithms.

    ``None`` if the longer statement passes through: then nothing of it is planned.
    """
    points = []
    for label in ("10 kB", "100 kB"):
        found = [
            run
            for run in runs
            if (run["shape"], run["label"], run["contender"]) == (shape, label, LOCAL_TASK)
        ]
        if not found or found[0]["reason"] in PASSED_THROUGH:
            return None
        points.append((found[0]["length"], median(run["planning"] for run in found)))
    (short, before), (long, after) = points
    return math.log(after / before) / math.log(long / short)


def write(runs: list[Record], machine: Record, folder: Path) -> None:
    """Writes ``planning.json`` and ``planning.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = json.dumps({"machine": machine, "runs": runs}, indent=1)
    (folder / "planning.json").write_text(document)
    head = ("shape", "statement", "parts", "kB", PLANNING, LOCAL_TASK, PLAIN, "result")
    lines = [table_row(head), table_row("---" if at in (0, 1, 7) else "---:" for at in range(8))]
    by_case: dict[Case, list[Record]] = {}
    for run in runs:
        by_case.setdefault(Case(run["shape"], run["label"], run["parts"]), []).append(run)
    lines += [table_row(row(case, found)) for case, found in by_case.items()]
    growth = [table_row(("shape", "exponent")), table_row(("---", "---:"))]
    for shape in dict.fromkeys(case.shape for case in by_case):
        found_exponent = exponent(runs, shape)
        text = "passes through" if found_exponent is None else f"{found_exponent:.2f}"
        growth.append(table_row((shape, text)))
    text = [
        "# How long the planning of long statements takes",
        "",
        "Median seconds in a warm session, with the range and the number of runs. *planning*: the "
        "local task without its waits for the keys and the metastore. *Spark's analysis*: of the "
        "plain statement, which its run needs in any case; it is left out where it takes many "
        "minutes.",
        "",
        *lines,
        "",
        "How the planning grows from 10 to 100 kB: 1 is linear, 2 the square.",
        "",
        *growth,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    (folder / "planning.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
