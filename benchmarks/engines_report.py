"""Writes the results of other engines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import Record, about, spread, table_row

LIBRARIES = ("duckdb", "datafusion", "polars", "pyarrow", "pyiceberg", "deltalake")
_HEAD = (
    *("engine", "files opened, own", "restricted", "seconds, own", "restricted", "ratio"),
    *("CPU seconds, own", "restricted", "ratio"),
)


def write_engines(document: Mapping[str, Any], folder: Path) -> None:
    """Writes ``engines.json`` and ``engines.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "engines.json").write_text(json.dumps(document, indent=1))
    measured: list[Record] = document["measured"]
    machine = document["machine"]
    libraries = {name: text for name, text in machine.items() if name in LIBRARIES}
    runs = [one for one in measured if one["way"]]
    lines = [
        "# Other engines: their own join, and a join restricted to a local task's list",
        "",
        f"{document['partitions']:,} partitions with one file each, {document['rows']} rows a "
        f"file; {document['matching']} match. *Own* is the engine's own join with its pruning on, "
        "*restricted* the same with the list or condition of a descriptor, from reading it on. "
        "Median, range and number of runs. The runs alternate; files are counted in a run of its "
        "own.",
        "",
        table_row(_HEAD),
        table_row(["---", *["---:"] * (len(_HEAD) - 1)]),
        *_rows(runs),
        "",
        f"- The worker's local task took {document['local_task']:.2f} s, once, with a stand-in of "
        "AWS Glue. Lists of Iceberg and Delta tables were made of the small table's rows: only "
        "Spark makes them.",
        "- PyIceberg has no join: *own* reads the table and PyArrow joins it. Its upsert is by the "
        "column `id`, which the table is not partitioned by.",
        "- delta-rs streams the source of a merge unless it is told not to. Only a source that is "
        "not streamed prunes the target by itself; then a list saves nothing.",
        f"- cases whose rows differ: {sum(one['differs'] for one in measured)}",
        f"- {', '.join(f'{name} {text}' for name, text in libraries.items())}",
        f"- 1-minute load of the machine beside the runs: {spread([one['load'] for one in runs])}",
        *about(machine, [one["noise"] for one in runs]),
        "",
    ]
    (folder / "engines.md").write_text("\n".join(lines))


def _rows(runs: list[Record]) -> Iterator[str]:
    for name in dict.fromkeys(one["name"] for one in runs):
        own, ours = (
            [one for one in runs if (one["name"], one["way"]) == (name, way)]
            for way in ("own", "restricted")
        )
        if name == "the tables afterwards":
            continue
        cells = [name, *(f"{each[0]['files']:,}" for each in (own, ours))]
        for number in ("seconds", "cpu_seconds"):
            theirs, found = ([one[number] for one in each[1:]] for each in (own, ours))
            cells += [spread(theirs), spread(found), f"{median(theirs) / median(found):.1f}"]
        yield table_row(cells)
