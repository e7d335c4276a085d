"""Every engine reads the partitions of a worker's list, with their values, and no other file."""

from __future__ import annotations

import duckdb
import polars
import pytest

from airflow_hive_opt.engines import duckdb as duckdb_engine
from tests.engines.opened import opened
from tests.engines.readers import READERS
from tests.engines.tables import FACT, KEYS, TYPES, instant

JOIN = f"SELECT f.id FROM {FACT} f JOIN {KEYS} s ON f.{{0}} = s.{{0}} AND s.g < {{1}}"
every_reader = pytest.mark.parametrize("reader", READERS)


@every_reader
@pytest.mark.parametrize("column", ["k", "n", "d", "m", "b"])
def test_rows_values_and_files_of_the_list(lake, reader, column):
    scan = lake.scan(JOIN.format(column, 3))
    wanted = {key[1 + list(TYPES).index(column)] for key in lake.keys if key[0] < 3} - {None}
    facts = [row for row in lake.facts if row[1 + list(TYPES).index(column)] in wanted]
    assert 0 < len(facts) < len(lake.facts)
    with opened(lake.folder) as files:
        rows = READERS[reader](scan)
    assert sorted(rows, key=repr) == sorted((tuple(map(instant, row)) for row in facts), key=repr)
    assert len(files) == len(facts)  # a row a file


@every_reader
def test_the_null_partition_is_read_if_it_is_asked_for(lake, reader):
    scan = lake.scan(f"SELECT f.id FROM {FACT} f WHERE f.k IS NULL")
    rows = READERS[reader](scan)
    assert sorted(row[0] for row in rows) == [row[0] for row in lake.facts if row[1] is None]
    assert {row[1] for row in rows} == {None}


@every_reader
def test_no_keys_mean_no_rows_but_all_columns(lake, reader):
    scan = lake.scan(JOIN.format("k", 0))
    assert scan.partitions == ()
    with opened(lake.folder) as files:
        assert READERS[reader](scan) == []
    assert len(files) <= 1


def test_a_file_that_duckdb_names_otherwise_is_an_error(lake, monkeypatch):
    """Its rows would be lost without a word."""
    cells = duckdb_engine._cells

    def renamed(scan, file):
        name, *values = cells(scan, file)
        return iter((name.replace("/", "//", 1), *values))

    monkeypatch.setattr(duckdb_engine, "_cells", renamed)
    with pytest.raises(duckdb.Error, match="another name than the list"):
        READERS["duckdb"](lake.scan(JOIN.format("k", 3)))


def test_a_file_that_polars_names_otherwise_is_an_error(lake, monkeypatch):
    scan_parquet = polars.scan_parquet

    def renamed(*arguments, **options):
        rows = scan_parquet(*arguments, **options)
        return rows.with_columns(polars.col("__file").str.replace("/", "//"))

    monkeypatch.setattr(polars, "scan_parquet", renamed)
    with pytest.raises(polars.exceptions.InvalidOperationError, match="incomplete mapping"):
        READERS["polars"](lake.scan(JOIN.format("k", 3)))
