"""What does a key index cost: its size, its build, an update, a lookup?

    python -m benchmarks.key_index --files 10000 --repeats 5

An Iceberg table of order lines, partitioned by day, with 20 files a day of 1,000 orders each, in a
catalog in SQLite. There are two layouts: the orders of a file follow each other, or they are random
ones of the whole table, so that nothing but an index tells where they are. The table's files are
written by PyArrow. The page cache has all files.

The keys of a lookup are 5,000 orders: in 20 files for the first layout, random for the second.
Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record as Partition
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField
from upath import UPath

from airflow_hive_opt.key_index.building import Built, build
from airflow_hive_opt.key_index.iceberg import IcebergColumn
from airflow_hive_opt.key_index.lookup import files_holding
from airflow_hive_opt.key_index.manifest import read_index
from benchmarks.measure import Machine, noise
from benchmarks.report import RESULTS, Record, about, spread

ROWS, FILES_OF_DAY, KEYS, NEW = 1_000, 20, 5_000, 20
LAYOUTS = ("in order", "random")
SCHEMA = Schema(
    NestedField(1, "day", IntegerType()),
    NestedField(2, "order_id", LongType()),
    NestedField(3, "price", DoubleType()),
)


def main() -> None:
    """Measures both layouts and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    runs = [run for layout in LAYOUTS for run in measured(layout, chosen.files, chosen.repeats)]
    machine = {**asdict(Machine()), "load": [load, os.getloadavg()[0]]}
    write(runs, machine, chosen.files, chosen.results)


def measured(layout: str, files: int, repeats: int) -> list[Record]:
    """The runs of one layout: builds of new indexes, updates, and lookups in the last one."""
    runs: list[Record] = []

    def timed(what: str, action: Callable[[], Any]) -> Any:
        cpu, began = time.process_time(), time.monotonic()
        found = action()
        run: Record = {"layout": layout, "what": what, "seconds": time.monotonic() - began}
        run["cpu_seconds"] = time.process_time() - cpu
        run["peak_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        runs.append(run | {"noise": noise()})
        return found

    def built(what: str, root: UPath) -> Built:
        def loaded_and_built() -> Built:
            column = IcebergColumn(catalog.load_table("dw.lines"), "dw.lines", "order_id")
            return build(root, column)

        found: Built = timed(what, loaded_and_built)
        runs[-1] |= {"index": found.summary()}
        return found

    with tempfile.TemporaryDirectory() as name:
        catalog = load_catalog(
            "lake", type="sql", uri=f"sqlite:///{name}/catalog.db", warehouse=f"file://{name}"
        )
        catalog.create_namespace("dw")
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
        table = catalog.create_table("dw.lines", SCHEMA, partition_spec=spec)
        orders = numpy.arange(files * ROWS)
        if layout == "random":
            numpy.random.default_rng(1).shuffle(orders)
        add(table, orders, 0)
        for at in range(repeats):
            root = UPath(name) / f"index-{at}"
            found = built("build", root)
            if (found.new_files, found.new_keys) != (files, files * ROWS):
                raise AssertionError(found)
        for at in range(repeats):
            first = (files + NEW * at) * ROWS
            add(table, numpy.arange(first, first + NEW * ROWS), files + NEW * at)
            if built("update", root).new_files != NEW:
                raise AssertionError("the update has read other files than the new ones")
        for at in range(repeats):
            start = at * KEYS * 7 % (files * ROWS - NEW * ROWS)
            keys = range(start // ROWS * ROWS, start // ROWS * ROWS + NEW * ROWS, 4)
            if layout == "random":
                keys = random.Random(at).sample(range(files * ROWS), KEYS)
            uuid, number = str(table.metadata.table_uuid), 2
            index = timed("read the manifest", partial(read_index, root, uuid, number))
            result = timed("look up", partial(files_holding, root, index, list(keys)))
            runs[-1] |= {"holding": len(result.holding)}
            if len(result.covered) != files + repeats * NEW:
                raise AssertionError("the index does not cover the table")
    return runs


def add(table: Table, orders: Sequence[int], first: int) -> None:
    """Commits files of the orders; the number of the first one decides its day."""
    arrow = schema_to_pyarrow(SCHEMA)
    table.refresh()
    with table.transaction() as made, made.update_snapshot().fast_append() as files:
        for at in range(len(orders) // ROWS):
            keys, day = (
                numpy.sort(orders[at * ROWS : (at + 1) * ROWS]),
                (first + at) // FILES_OF_DAY,
            )
            path = Path(table.location().removeprefix("file://")) / f"data/day={day}"
            path.mkdir(parents=True, exist_ok=True)
            path /= f"{first + at:05}-{random.randbytes(16).hex()}-00001.parquet"
            rows = pa.table([pa.repeat(pa.scalar(day, pa.int32()), ROWS), keys, keys * 1.5], arrow)
            pq.write_table(rows, path)
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"file://{path}",
                file_format=FileFormat.PARQUET,
                partition=Partition(day),
                record_count=ROWS,
                file_size_in_bytes=path.stat().st_size,
            )
            file.spec_id = table.spec().spec_id
            files.append_data_file(file)


def write(runs: list[Record], machine: Record, files: int, folder: Path) -> None:
    """Writes ``key_index.json`` and ``key_index.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key_index.json").write_text(json.dumps({"machine": machine, "runs": runs}, indent=1))
    lines = ["| orders | step | seconds | CPU s |", "|---|---|---:|---:|"]
    facts = []
    for layout in LAYOUTS:
        of = [run for run in runs if run["layout"] == layout]
        for what in dict.fromkeys(run["what"] for run in of):
            found = [run for run in of if run["what"] == what]
            lines.append(
                f"| {layout} | {what} | {spread([run['seconds'] for run in found])} | "
                f"{spread([run['cpu_seconds'] for run in found])} |"
            )
        built = next(run["index"] for run in of if run["what"] == "build")
        holding = [run["holding"] for run in of if "holding" in run]
        facts.append(
            f"{layout}: {built['bytes'] / built['keys']:.2f} bytes for each key with the list of "
            f"files, {built['bytes']:,} bytes in all; {KEYS:,} keys are in {min(holding):,} to "
            f"{max(holding):,} files"
        )
    peak = max(run["peak_memory"] for run in runs)
    before, after = machine["load"]
    text = [
        "# A key index: size, build, update, lookup",
        "",
        f"{files:,} files of {ROWS:,} orders, {FILES_OF_DAY} files a day. An update reads "
        f"{NEW} new files. Median seconds, with the range and the number of runs.",
        "",
        *lines,
        "",
        *(f"- {fact}" for fact in facts),
        f"- peak memory of the process, with the making of the tables: {peak / 1e6:,.0f} MB",
        "",
        *about(machine, [run["noise"] for run in runs]),
        f"- load of the machine: {before:.1f} before, {after:.1f} after",
    ]
    (folder / "key_index.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
