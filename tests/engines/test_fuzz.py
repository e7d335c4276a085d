"""Random joins in every engine, with the worker's list or with keys: the rows are Python's.

``FUZZ_ENGINES=500 FUZZ_SEED=7`` tests more of them.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from airflow_hive_opt.engines import arrow, datafusion, delta, duckdb, iceberg, polars
from airflow_hive_opt.engines.files import files_of
from tests.engines.lake_scans import filter_on, lake_scan
from tests.engines.opened import opened
from tests.engines.tables import FACT, JOINED, KEYS, TYPES
from tests.engines.test_lakes import delta_table, iceberg_table
from tests.fuzz.findings import SEED, case, count_of, repeat, report

JOINS = count_of("FUZZ_ENGINES", 8)
ON = " AND ".join


def by_duckdb(scan, keys, columns):
    import duckdb as library

    with library.connect() as connection:
        connection.register("keys", keys)
        duckdb.relation(connection, scan).create_view("fact")
        on = ON(f"f.{name} = s.{name}" for name in columns)
        return connection.sql(f"SELECT f.id FROM fact f JOIN keys s ON {on}").fetchall()


def by_datafusion(scan, keys, columns):
    import datafusion as library

    context = library.SessionContext()
    context.from_arrow(keys, name="keys")
    datafusion.register(context, "fact", scan)
    on = ON(f"f.{name} = s.{name}" for name in columns)
    found = context.sql(f"SELECT f.id FROM fact f JOIN keys s ON {on}").to_arrow_table()
    return zip(found["id"].to_pylist(), strict=True)


def by_arrow(scan, keys, columns):
    found = arrow.dataset(scan).to_table().join(keys, list(columns), join_type="inner")
    return zip(found["id"].to_pylist(), strict=True)


def by_polars(scan, keys, columns):
    import polars as pl

    found = polars.lazy_frame(scan).join(pl.from_arrow(keys).lazy(), on=list(columns))
    return found.select("id").collect().rows()


def by_iceberg(table, scan, keys, columns):
    found = table.scan(row_filter=iceberg.row_filter(scan, table)).to_arrow()
    return joined(found, keys, columns)


def by_delta(table, scan, keys, columns):
    found = pa.table(table.scan(predicate=delta.predicate(scan, table)))
    return joined(found, keys, columns)


def joined(found, keys, columns):
    """The ids that join; both engines have types of their own for texts."""
    schema = pa.schema([("id", pa.int64()), *keys.schema])
    rows = found.select(schema.names).cast(schema)
    return zip(rows.join(keys, list(columns), join_type="inner")["id"].to_pylist(), strict=True)


READERS = {
    "duckdb": by_duckdb,
    "datafusion": by_datafusion,
    "arrow": by_arrow,
    "polars": by_polars,
}
LAKES = {"iceberg": (iceberg_table, by_iceberg), "delta": (delta_table, by_delta)}


def random_join(rng, lake):
    """The columns of a join, the number of a group of keys, and the statement."""
    columns = tuple(sorted(rng.sample(JOINED, rng.choice((1, 1, 2, 3))), key=JOINED.index))
    groups = set(rng.sample(range(45), rng.randint(1, 6)))
    on = ON(f"f.{name} = s.{name}" for name in columns)
    numbers = ", ".join(map(str, sorted(groups)))
    sql = f"SELECT f.id FROM {FACT} f JOIN {KEYS} s ON {on} AND s.g IN ({numbers})"
    wanted = [row for row in lake.key_columns.to_pylist() if row["g"] in groups]
    keys = pa.Table.from_pylist(wanted, lake.key_columns.schema).select(columns)
    return columns, groups, sql, keys


def sorted_ids(rows):
    return sorted(id_ for (id_,) in rows)


def test_random_joins_with_the_workers_list(lake):
    """The worker may leave a join whole, if nearly all partitions match."""
    rng, seen, wrong, number = Random(SEED), Counter(), [], 0
    while number < JOINS:
        columns, groups, sql, keys = random_join(rng, lake)
        descriptor = lake.descriptor(sql)
        if not descriptor.targets:
            seen["not pruned"] += 1
            continue
        number += 1
        scan = lake.scan(sql)
        plain = lake.joined(columns, groups)
        files = {file.path for file in files_of(scan).files}
        seen["no keys" if not files else "pruned"] += 1
        for name, read in READERS.items():
            with case(sql, engine=name) as finding, opened(lake.folder / "fact") as read_files:
                found = sorted_ids(read(scan, keys, columns))
            if found != plain:
                wrong.append(finding(plain=plain, found=found))
            if files and not read_files <= files:
                wrong.append(finding(opened=sorted(read_files - files)))
    print(f"{repeat(FUZZ_ENGINES=JOINS)}: {dict(seen)}")
    assert not wrong, report(wrong, FUZZ_ENGINES=JOINS)
    assert seen["pruned"] > JOINS / 2


@pytest.mark.parametrize("engine", LAKES)
def test_random_joins_with_keys(lake, tmp_path, engine):
    """The condition has the values of each column, or ranges around some of them."""
    make, read = LAKES[engine]
    rng, wrong, pruned = Random(SEED), [], 0
    rows = lake.fact_columns
    table = make(tmp_path, rows, "k")
    for _ in range(JOINS):
        columns, groups, sql, keys = random_join(rng, lake)
        filters = []
        for name in columns:
            values = sorted({*keys[name].to_pylist()} - {None})
            if is_range := bool(values) and rng.random() < 0.4:
                values = [values[0], values[-1]]
            filters.append(filter_on(name, TYPES[name], values, is_range))
        with case(sql, filters=filters) as finding, opened(tmp_path) as files:
            found = sorted_ids(read(table, lake_scan(*filters), keys, columns))
        plain = lake.joined(columns, groups)
        pruned += len(files) < len(set(rows["k"].to_pylist()))
        if found != plain:
            wrong.append(finding(plain=plain, found=found))
    print(f"{repeat(FUZZ_ENGINES=JOINS)}: {pruned} of {JOINS} pruned")
    assert not wrong, report(wrong, FUZZ_ENGINES=JOINS)
    assert pruned > JOINS / 4
