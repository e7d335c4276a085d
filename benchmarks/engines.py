"""Other engines: their own join with its pruning on, against the list of a local task.

    python -m benchmarks.engines --partitions 3000 --repeats 5

A fact table has one file a day: in folders of Hive's form, as an Iceberg and as a Delta table. A
small table chooses five days. Each engine joins them in its own way, and once more restricted to
the list; the runs alternate. The command exits with 1 if the rows differ. Files opened are counted
in a run of its own. Results go to ``benchmarks/results``.

The list of the partitioned table is the worker's, from a stand-in of AWS Glue. Only Spark makes the
lists of Iceberg and Delta tables; here they are made of the small table's rows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_hive_opt.engines import datafusion, delta, duckdb, iceberg, polars
from airflow_hive_opt.engines.scan import PrunedScan, pruned_scan
from benchmarks.engines_report import LIBRARIES, write_engines
from benchmarks.measure import Machine, noise
from benchmarks.report import RESULTS
from tests.engines.lake_scans import filter_on, lake_scan
from tests.engines.opened import opened
from tests.engines.tables import Lake
from tests.services.glue_stand_in import (
    create_databases,
    create_parquet_table,
    glue_stand_in,
)

MATCHING = 5
ROWS = 200  # of a file
FACT, DAYS = "lake.sales", "lake.days"
JOIN = f"SELECT f.price FROM {FACT} f JOIN {DAYS} d ON f.day = d.day AND d.chosen"

OWN, RESTRICTED = WAYS = ("own", "restricted")
_COLUMNS = pa.schema([("id", pa.int64()), ("price", pa.int64())])
_SUM = "SELECT sum(f.price) FROM {} f JOIN days d ON f.day = d.day WHERE d.chosen"

Run = Callable[[int], int]
"""Runs a join and returns the sum of its prices. The argument is the number of the run."""


@dataclass(frozen=True)
class Case:
    """One engine's join, in its own way and restricted."""

    name: str
    runs: dict[str, Run]


@dataclass(frozen=True)
class Tables:
    """The fact table in three forms, below ``folder``, and the small table."""

    folder: Path
    days: pa.Table
    sales: pa.Table
    lake: Lake
    iceberg: dict[str, Any]
    delta: dict[str, Any]

    @property
    def chosen(self) -> list[date]:
        """The days that the small table chooses."""
        return self.days.filter(self.days["chosen"])["day"].to_pylist()

    @property
    def of_lake(self) -> PrunedScan:
        """The condition on the Iceberg and on the Delta table."""
        return lake_scan(filter_on("day", "date", self.chosen))


def main() -> None:
    """Makes the tables, runs everything and writes the results."""
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(dir=arguments.folder) as folder,
        glue_stand_in() as stand_in,
    ):
        tables = _made(Path(folder).resolve(), arguments.partitions, stand_in)
        began = time.perf_counter()
        output = tables.lake.local_task(JOIN)
        local_task = time.perf_counter() - began
        measured: list[dict[str, Any]] = []
        for case in [*_joins(tables, output), *_lake_joins(tables), *_merges(tables)]:
            measured += _measured(case, tables.folder, arguments.repeats)
            print(*measured[-2 * arguments.repeats - 2 :], sep="\n", flush=True)
    document = {
        "machine": {**asdict(Machine()), **{name: version(name) for name in LIBRARIES}},
        "partitions": arguments.partitions,
        "matching": MATCHING,
        "rows": ROWS,
        "local_task": local_task,
        "measured": measured,
    }
    write_engines(document, arguments.results)
    sys.exit(1 if any(one["differs"] for one in measured) else 0)


def _measured(case: Case, folder: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """The runs of a case: first those that count files, then ``repeats`` in turn."""
    for number in range(repeats + 1):
        answers = {}
        for way, run in case.runs.items():
            found: dict[str, Any] = {"name": case.name, "way": way, "number": number}
            with _counted(folder) if number == 0 else _timed(found):
                answers[way] = run(number)
            if number == 0:
                found["files"] = len(_LAST)
            yield {**found, "noise": noise(), "load": os.getloadavg()[0], "differs": False}
        if len(set(answers.values())) > 1:
            yield {"name": case.name, "way": "", "number": number, "differs": True} | answers


_LAST: set[str] = set()


@contextmanager
def _counted(folder: Path) -> Iterator[None]:
    _LAST.clear()
    with opened(folder) as files:
        yield
    _LAST.update(files)


@contextmanager
def _timed(found: dict[str, Any]) -> Iterator[None]:
    began, cpu = time.perf_counter(), time.process_time()
    yield
    found["seconds"] = time.perf_counter() - began
    found["cpu_seconds"] = time.process_time() - cpu


def _made(folder: Path, partitions: int, stand_in: Any) -> Tables:
    first = date(2016, 1, 1)
    every = [first + timedelta(number) for number in range(partitions)]
    step = partitions // MATCHING
    days = pa.table({"day": every, "chosen": [number % step == 7 for number in range(partitions)]})
    count = partitions * ROWS
    # spread, so that no file's lowest and highest id leave it out
    ids = pa.array([number * 100_003 % count for number in range(count)])
    sales = pa.table(
        {
            "id": ids,
            "price": pc.bit_wise_and(ids, 127),
            "day": pa.array([day for day in every for _ in range(ROWS)]),
        }
    )
    entries = []
    for number, day in enumerate(every):
        place = folder / "sales" / f"day={day}"
        place.mkdir(parents=True)
        rows = sales.slice(number * ROWS, ROWS).select(_COLUMNS.names)
        pq.write_table(rows, place / "part-0.parquet")
        entries.append(([str(day)], f"file:{place}"))
    (folder / "days").mkdir()
    pq.write_table(days, folder / "days" / "part-0.parquet")
    client = stand_in.client()
    create_databases(client, folder)
    create_parquet_table(client, "days", folder, [("day", "date"), ("chosen", "boolean")])
    columns = [("id", "bigint"), ("price", "bigint")]
    create_parquet_table(client, "sales", folder, columns, [("day", "date")], entries)
    return Tables(
        folder,
        days,
        sales,
        Lake(folder, stand_in.endpoint, (), (), {}),
        {way: _iceberg(folder / f"iceberg {way}", sales) for way in WAYS},
        {way: _delta(folder / f"delta {way}", sales, days) for way in WAYS},
    )


def _iceberg(folder: Path, sales: pa.Table) -> Any:
    from pyiceberg.catalog.memory import InMemoryCatalog

    folder.mkdir()
    catalog = InMemoryCatalog("lake", warehouse=f"file://{folder}")
    catalog.create_namespace("dw")
    table = catalog.create_table("dw.sales", sales.schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(sales)
    return table


def _delta(folder: Path, sales: pa.Table, days: pa.Table) -> Any:
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(str(folder), sales, partition_by=["day"])
    write_deltalake(f"{folder} days", days)
    return DeltaTable(str(folder))


def _joins(tables: Tables, output: dict[str, Any]) -> Iterator[Case]:
    """The engines on the folders of the partitioned table."""
    sales, days = tables.folder / "sales", tables.folder / "days" / "part-0.parquet"

    def by_duckdb(way: str, _: int) -> int:
        import duckdb as library

        with library.connect() as connection:
            connection.execute(f"CREATE VIEW days AS FROM read_parquet('{days}')")
            if way == OWN:
                pattern = f"read_parquet('{sales}/*/*.parquet', hive_types = {{day: DATE}})"
                connection.execute(f"CREATE VIEW sales AS FROM {pattern}")
            else:
                duckdb.relation(connection, pruned_scan(output, FACT)).create_view("sales")
            return connection.execute(_SUM.format("sales")).fetchone()[0]

    def by_datafusion(way: str, _: int) -> int:
        import datafusion as library

        context = library.SessionContext()
        context.register_parquet("days", str(days))
        if way == OWN:
            partitioned = [("day", pa.date32())]
            context.register_parquet(
                "sales", str(sales), table_partition_cols=partitioned, schema=_COLUMNS
            )
        else:
            datafusion.register(context, "sales", pruned_scan(output, FACT))
        return context.sql(_SUM.format("sales")).to_arrow_table()[0][0].as_py()

    def by_polars(way: str, _: int) -> int:
        import polars as library

        if way == OWN:
            frame = library.scan_parquet(sales, hive_schema={"day": library.Date})
        else:
            frame = polars.lazy_frame(pruned_scan(output, FACT))
        small = library.scan_parquet(days).filter("chosen")
        joined = frame.join(small, on="day").select(library.col("price").sum())
        return joined.collect().item()

    for name, run in (("DuckDB", by_duckdb), ("DataFusion", by_datafusion), ("Polars", by_polars)):
        yield Case(name, {way: partial(run, way) for way in WAYS})


def _lake_joins(tables: Tables) -> Iterator[Case]:
    """PyIceberg and delta-rs; PyIceberg has no join, so PyArrow joins what it reads."""

    def by_iceberg(way: str, _: int) -> int:
        table = tables.iceberg[way]
        found = table.scan()
        if way == RESTRICTED:
            found = table.scan(row_filter=iceberg.row_filter(tables.of_lake, table))
        small = tables.days.filter(tables.days["chosen"])
        return pc.sum(found.to_arrow().join(small, "day", join_type="inner")["price"]).as_py()

    def by_delta(way: str, _: int) -> int:
        from deltalake import DeltaTable, QueryBuilder

        table = tables.delta[way]
        builder = QueryBuilder().register("sales", table)
        builder = builder.register("days", DeltaTable(f"{tables.folder}/delta {way} days"))
        sql = _SUM.format("sales")
        if way == RESTRICTED:
            sql += f" AND {delta.predicate(tables.of_lake, table, 'f')}"
        return pa.table(builder.execute(sql))[0][0].as_py()

    yield Case("PyIceberg, scan", {way: partial(by_iceberg, way) for way in WAYS})
    yield Case("delta-rs, query", {way: partial(by_delta, way) for way in WAYS})


def _merges(tables: Tables) -> Iterator[Case]:
    """A row of each chosen day is updated; each way has a table of its own."""
    at = pc.is_in(tables.sales["day"], pa.array(tables.chosen))
    chosen = tables.sales.filter(at)
    few = chosen.take(list(range(3, chosen.num_rows, ROWS)))

    def rows(number: int) -> pa.Table:
        return few.set_column(1, "price", pa.array([1_000 + number] * few.num_rows))

    def by_iceberg(way: str, number: int) -> int:
        table = tables.iceberg[way]
        if way == OWN:
            table.upsert(rows(number), ["id"])
        else:
            iceberg.upsert(table, rows(number), ["id"], tables.of_lake)
        return few.num_rows

    def by_delta(streamed: bool, way: str, number: int) -> int:
        table, on = tables.delta[way], "t.id = s.id AND t.day = s.day"
        if way == RESTRICTED:
            on = delta.merge_predicate(on, tables.of_lake, table, rows(number), "t")
        merge = table.merge(
            rows(number), on, source_alias="s", target_alias="t", streamed_exec=streamed
        )
        return merge.when_matched_update_all().execute()["num_target_rows_updated"]

    yield Case("PyIceberg, upsert", {way: partial(by_iceberg, way) for way in WAYS})
    for name, streamed in (("delta-rs, merge", True), ("delta-rs, merge not streamed", False)):
        yield Case(name, {way: partial(by_delta, streamed, way) for way in WAYS})
    yield Case(
        "the tables afterwards",
        {way: lambda _, way=way: _sums(tables, way) for way in WAYS},
    )


def _sums(tables: Tables, way: str) -> int:
    """A number that differs if one of the tables has other rows."""
    found = [tables.iceberg[way].scan().to_arrow(), tables.delta[way].to_pyarrow_table()]
    return hash(
        tuple(
            pc.sum(pc.multiply(pc.cast(each["id"], "int64"), each["price"])).as_py()
            for each in found
        )
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--partitions", type=int, default=3_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="for the tables, temporarily")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
