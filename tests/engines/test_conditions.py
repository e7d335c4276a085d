"""The condition of a list, in tables that engines open themselves, by the names of folders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_hive_opt.engines import arrow, datafusion, duckdb, polars
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.metastores.partitions import DEFAULT_PARTITION, Partition
from tests.engines.opened import opened
from tests.engines.tables import FACT, KEYS, TYPES, text_of

JOIN = f"SELECT f.id FROM {FACT} f JOIN {KEYS} s ON f.{{0}} = s.{{0}} AND s.g < 3"


def by_duckdb(lake, scan):
    import duckdb as library

    types = {**dict.fromkeys(TYPES, "VARCHAR"), "n": "BIGINT", "d": "DATE", "m": "'DECIMAL(5,2)'"}
    types |= {"b": "BOOLEAN", "ts": "TIMESTAMP"}
    columns = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
    with library.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        rows = connection.execute(
            f"SELECT id FROM read_parquet('{lake.folder}/fact/**/*.parquet', "
            f"hive_types = {{{columns}}}) WHERE {duckdb.condition(scan)}"
        ).fetchall()
    return [row[0] for row in rows]


def by_arrow(lake, scan):
    import pyarrow as pa
    import pyarrow.dataset as ds

    fields = [(field.name, field.type) for field in lake.fact_columns.schema][1:-1]
    del fields[3]  # PyArrow reads no decimals in the names of folders
    schema = pa.schema([*fields, ("ts", pa.timestamp("us"))])
    partitioning = ds.partitioning(schema, flavor="hive")
    found = ds.dataset(lake.folder / "fact", format="parquet", partitioning=partitioning)
    return found.to_table(columns=["id"], filter=arrow.expression(scan))["id"].to_pylist()


def by_polars(lake, scan):
    import polars as pl

    schema = {"k": pl.String, "n": pl.Int64, "d": pl.Date, "m": pl.Decimal(5, 2)}
    schema |= {"b": pl.Boolean, "ts": pl.Datetime("us")}
    frame = pl.scan_parquet(lake.folder / "fact", hive_partitioning=True, hive_schema=schema)
    return frame.filter(polars.predicate(scan)).select("id").collect()["id"].to_list()


def by_datafusion(lake, scan):
    import datafusion as library
    import pyarrow as pa

    folder = lake.folder / "known" / "fact"
    if not folder.exists():  # DataFusion reads no NULL in the names of folders
        for path in lake.folder.glob("fact/**/*.parquet"):
            if DEFAULT_PARTITION not in str(path):
                place = folder / path.parent.relative_to(lake.folder / "fact")
                place.mkdir(parents=True, exist_ok=True)
                (place / path.name).hardlink_to(path)
    fields = [(field.name, field.type) for field in lake.fact_columns.schema][1:-1]
    context = library.SessionContext()
    context.register_parquet(
        "fact",
        str(folder),
        table_partition_cols=[*fields, ("ts", pa.timestamp("us"))],
        schema=pa.schema([("id", pa.int64())]),
    )
    with opened(folder) as files:
        found = context.sql(f"SELECT id FROM fact WHERE {datafusion.condition(scan)}")
        ids = found.to_arrow_table()["id"].to_pylist()
    assert len(files) == len(ids)
    return ids


# Besides the files that the condition leaves, engines open some to learn the table's columns.
READERS = {"duckdb": (by_duckdb, 1), "arrow": (by_arrow, 1), "polars": (by_polars, 16)}
SQL = {
    **{column: JOIN.format(column) for column in ("k", "n", "d", "m", "b")},
    "null": f"SELECT id FROM {FACT} f WHERE f.k IS NULL",
    "two columns": f"SELECT id FROM {FACT} f JOIN {KEYS} s ON f.k = s.k AND f.n = s.n AND s.g < 20",
    "no keys": JOIN.format("k").replace("< 3", "< 0"),
}


def ids_in(lake, scan, folder):
    """The ids of the scan's partitions whose location is below the folder."""
    places = {part.location for part in scan.partitions}
    return sorted(
        id_ for place in places if place.startswith(f"file:{folder}/") for id_ in lake.ids[place]
    )


@pytest.mark.parametrize("case", SQL)
@pytest.mark.parametrize("reader", READERS)
def test_rows_and_files_by_the_condition(lake, reader, case):
    if (reader, case) == ("arrow", "m"):
        pytest.skip("PyArrow reads no decimals in the names of folders")
    scan = lake.scan(SQL[case])
    read, more = READERS[reader]
    with opened(lake.folder / "fact") as files:
        found = read(lake, scan)
    assert sorted(found) == ids_in(lake, scan, lake.folder / "fact")
    assert len(found) <= len(files) <= len(found) + more


@pytest.mark.parametrize("reader", READERS)
def test_a_timestamp_in_the_name_of_a_folder_is_a_wall_clock(lake, reader):
    """Also in the night when clocks change, whatever the engine's own time zone is."""
    scan = lake.scan(SQL["null"])
    every = tuple(
        Partition(tuple(map(text_of, row[1:])), place)
        for place, (id_, _) in lake.ids.items()
        for row in [lake.facts[id_]]
    )
    two = tuple(part for part in every if part.values[-1] in ("2024-03-31 02:30:00", None))
    found = READERS[reader][0](lake, replace(scan, pruned_columns=("ts",), partitions=two))
    expected = ids_in(lake, replace(scan, partitions=two), lake.folder / "fact")
    assert sorted(found) == expected != []


@pytest.mark.parametrize("case", sorted({*SQL} - {"null"}))
def test_rows_and_files_of_datafusion(lake, case):
    scan = lake.scan(SQL[case])
    known = [
        part
        for part in scan.partitions
        if None not in part.values and part.location.startswith(f"file:{lake.folder}/fact/")
    ]
    assert sorted(by_datafusion(lake, scan)) == ids_in(
        lake, replace(scan, partitions=tuple(known)), lake.folder / "fact"
    )


def test_datafusion_finds_no_null_in_the_names_of_folders(lake):
    with pytest.raises(EngineError, match=r"DataFusion finds no NULL .* use register\(\) instead"):
        datafusion.condition(lake.scan(SQL["null"]))


def test_an_older_datafusion_finds_no_escaped_names(lake, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.engines.installed.version", lambda _: "54.9.9")
    scan = lake.scan(SQL["k"])
    escaped = Partition(("x/y", *scan.partitions[0].values[1:]))
    with pytest.raises(EngineError, match=r"^DataFusion before 55 .* such as k=x%2Fy of lake.fact"):
        datafusion.condition(replace(scan, partitions=(escaped,)))
    assert datafusion.condition(lake.scan(SQL["n"]))


def test_an_older_duckdb_finds_no_null_in_the_names_of_folders(lake, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.engines.installed.version", lambda _: "1.4.9")
    with pytest.raises(EngineError, match=r"^DuckDB before 1.5 finds no NULL .* use relation\(\)"):
        duckdb.condition(lake.scan(SQL["null"]))
    assert duckdb.condition(lake.scan(SQL["n"]))


def test_columns_of_smaller_types():
    import polars as pl
    import pyarrow as pa

    types = {"t": "tinyint", "s": "smallint", "i": "int", "v": "varchar(3)"}
    rows = pa.table(
        {
            "t": pa.array([1, 2, None], pa.int8()),
            "s": pa.array([1, 2, None], pa.int16()),
            "i": pa.array([1, 2, None], pa.int32()),
            "v": ["a", "b", None],
        }
    )
    for column in types:
        scan = PrunedScan(
            table="dw.t",
            location=None,
            columns=tuple(types),
            types=tuple(types.values()),
            pruned_columns=(column,),
            partitions=(Partition(("2", "2", "2", "b")), Partition((None,) * 4)),
            alternatives=(),
            lists_files=False,
        )
        expected = rows.slice(1).to_pylist()
        assert rows.filter(arrow.expression(scan)).to_pylist() == expected
        assert pl.from_arrow(rows).filter(polars.predicate(scan)).to_dicts() == expected
