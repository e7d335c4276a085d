"""One local task, in the worker or on Spark; as a module, in a process of its own.

It reads an order from standard input, and prints what the process has cost until then. Imports of
the worker's libraries count, since nothing has imported them before.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.descriptor import Descriptor
    from airflow_hive_opt.documents.storage import StoragePath

WORKER, SPARK = "worker", "Spark"


def by_worker(uri: str, sql: str) -> Descriptor | str:
    """The worker's descriptor, or the reason why it has none."""
    from upath import UPath

    from airflow_hive_opt.documents.job import Job
    from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
    from airflow_hive_opt.worker.local_task import Place, find
    from airflow_hive_opt.worker.unanswered import Unanswered

    def open_path(folder: str) -> StoragePath:
        return UPath(re.sub(r"^file:/+", "/", folder))

    try:
        return find(Job(sql), Place(ThriftMetastore(uri), False, {}, open_path)).descriptor
    except Unanswered as why:
        return str(why)


def by_spark(session: SparkSession, sql: str, path: StoragePath) -> Descriptor:
    """The descriptor of Spark's local task, written to ``path``."""
    from airflow_hive_opt.documents.job import Job
    from airflow_hive_opt.spark.application.run import Run

    return Run(session, Job(sql), path).local_task(hand_over=True).descriptor


def main() -> None:
    """Runs the order."""
    by, uri, conf, sql, began = json.load(sys.stdin)
    if by == WORKER:
        found = by_worker(uri, sql)
        assert not isinstance(found, str), found
        answer = cost(began)
    else:
        from upath import UPath

        from airflow_hive_opt.spark.session.session import spark_session

        with tempfile.TemporaryDirectory() as scratch, spark_session("fresh", conf) as session:
            found = by_spark(session, sql, UPath(scratch) / "descriptor.json")
            answer = cost(began)
    (target,) = found.targets
    print(json.dumps({**answer, "kept": target.kept}))


def cost(began: float) -> dict[str, float]:
    """Seconds since ``began``, CPU seconds and peak memory of this process and of those below."""
    seconds, ticks, peak = time.monotonic() - began, 0, 0
    for process in _family(os.getpid()):
        fields = Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))  # with those that have ended
        status = Path("/proc", str(process), "status").read_text()
        found = re.search(r"VmHWM:\s*(\d+) kB", status)
        peak += int(found[1]) << 10 if found else 0
    cpu = ticks / os.sysconf("SC_CLK_TCK")
    return {"seconds": seconds, "cpu_seconds": cpu, "peak": peak}


def _family(process: int) -> Iterator[int]:
    yield process
    for task in Path("/proc", str(process), "task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


if __name__ == "__main__":
    main()
