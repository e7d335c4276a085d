"""The required partitions that Delta tables lack, as ``deltalake`` reads their log."""

from __future__ import annotations

import json
from datetime import date

import pytest

pytest.importorskip("deltalake")
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from airflow_hive_opt.metastores.delta import DeltaTables
from airflow_hive_opt.metastores.lakes import Absent, CatalogError
from airflow_hive_opt.metastores.required import Required

DAYS = tuple((date(2026, 1, day),) for day in (1, 2, 3))


def required(path, tuples=DAYS, column="day", type_="date") -> Required:
    location = f"file:{path}"
    return Required("dw.t", (column,), (type_,), (column,), tuples, "delta", location)


def write(path, *days, mode="append") -> None:
    rows = pa.table({"id": pa.array([1] * len(days), pa.int64()), "Day": pa.array(days)})
    write_deltalake(str(path), rows, partition_by=["Day"], mode=mode)


def test_missing_partitions_of_a_delta_table_are_those_not_in_its_log(tmp_path):
    path = tmp_path / "t"
    tables = DeltaTables({})
    nothing = Absent(DAYS, f"there is no Delta table at file:{path}")
    assert tables.absent(required(path)) == nothing
    write(path, date(2026, 1, 1), None)
    assert tables.absent(required(path)) == Absent(DAYS[1:])
    write(path, date(2026, 1, 3))
    assert tables.absent(required(path)) == Absent(DAYS[1:2])
    DeltaTable(str(path)).delete("\"Day\" = '2026-01-01'")
    assert tables.absent(required(path)) == Absent(DAYS[:2])


def test_an_unchanged_table_is_not_read_again(tmp_path, monkeypatch):
    path = tmp_path / "t"
    write(path, date(2026, 1, 1))
    tables = DeltaTables({})
    first = tables.absent(required(path))
    monkeypatch.setattr(DeltaTable, "get_add_actions", lambda *_, **__: pytest.fail("read again"))
    assert tables.absent(required(path)) is first


def test_a_delta_table_that_was_dropped_and_made_again_is_read_again(tmp_path):
    import shutil

    path = tmp_path / "t"
    write(path, *(day for (day,) in DAYS))
    tables = DeltaTables({})
    assert tables.absent(required(path)) == Absent(())
    shutil.rmtree(path)
    assert tables.absent(required(path)).tuples == DAYS
    write(path, date(2026, 1, 2))
    assert tables.absent(required(path)).tuples == (DAYS[0], DAYS[2])


def test_a_delta_column_of_another_type_or_not_partitioned_is_an_error(tmp_path):
    path = tmp_path / "t"
    write(path, date(2026, 1, 1))
    with pytest.raises(CatalogError, match="day of dw.t is a date in its log, but Spark reads"):
        DeltaTables({}).absent(required(path, (("2026-01-01",),), type_="string"))
    with pytest.raises(CatalogError, match="dw.t is not partitioned by id"):
        DeltaTables({}).absent(required(path, ((1,),), "id", "bigint"))


def test_errors_of_delta_tables_have_no_secrets(tmp_path):
    path = tmp_path / "t"
    write(path, date(2026, 1, 1))
    log = path / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"]["minReaderVersion"] = 99
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(CatalogError) as caught:
        DeltaTables({"aws_secret_access_key": "s3cr3t-key"}).absent(required(path))
    assert "s3cr3t-key" not in str(caught.value)
    assert "\n" not in str(caught.value)
