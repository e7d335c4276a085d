"""Calls and seconds of lookups in AWS Glue, on moto's server with a proxy before it.

    python -m benchmarks.glue 10000 100000

Prints a table for each number of partitions. Each question is asked twice, and the second time
counts: the proxy then has moto's answer, whose evaluation of an expression takes seconds. What
remains is the client's work and loopback. A call to AWS itself takes 50 ms to 500 ms.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial

from airflow_hive_opt.metastores.glue.connection import GlueSettings
from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
from airflow_hive_opt.metastores.metastore import KeySet
from airflow_hive_opt.statement.catalog import Table
from tests.services.glue_stand_in import REGION, GlueStandIn, glue_stand_in

KEYS = 10
Question = Callable[[GlueMetastore, Table], int]


def by_keys(keys: list[KeySet], metastore: GlueMetastore, table: Table) -> int:
    return len(metastore.partitions_by_keys(table, keys, 0))


def first_page(metastore: GlueMetastore, table: Table) -> int:
    return metastore.partition_count(table)


def every(metastore: GlueMetastore, table: Table) -> int:
    return len(metastore.partition_names(table))


def measure(glue: GlueStandIn, name: str, way: str, question: Question) -> None:
    """Prints one line for a question about a table, asked by a new client."""
    for counts in (False, True):
        with GlueMetastore(GlueSettings(REGION, glue.endpoint)) as metastore:
            table = metastore.table(name)
            assert table is not None
            before, start = metastore.work(), time.perf_counter()
            found = question(metastore, table)
            seconds, work = time.perf_counter() - start, metastore.work() - before
        if counts:
            numbers = f"{work.metastore_calls:,} | {work.partitions_fetched:,} | {seconds:.3f}"
            print(f"| {way} | {found:,} | {numbers} |", flush=True)


def main(sizes: list[int]) -> None:
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "x")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "x")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with glue_stand_in() as glue:
        for size in sizes:
            texts = [f"k{number:06}" for number in range(size)]
            days = [date(1750, 1, 1) + timedelta(number) for number in range(size)]
            strings, dates = f"bench.strings{size}", f"bench.dates{size}"
            glue.create_table(strings, [("p", "string")], [(text,) for text in texts])
            glue.create_table(dates, [("p", "date")], [(str(day),) for day in days])
            step = size // KEYS
            named = partial(by_keys, [((0,), frozenset((text,) for text in texts[::step]))])
            typed = partial(by_keys, [((0,), frozenset((day,) for day in days[::step]))])
            print(f"\n{KEYS} of {size:,}\n\n| way | found | calls | fetched | s |")
            print("|---|---:|---:|---:|---:|")
            measure(glue, strings, "strings, by their values", named)
            measure(glue, dates, "dates, by an expression", typed)
            measure(glue, dates, "the first page, to count", first_page)
            measure(glue, dates, "all partitions", every)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [10_000, 100_000])
