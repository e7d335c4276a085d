"""The examples on the page on other engines do what it says; the page's own text is run."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hive_opt.engines.scan import scan_of
from tests.engines.tables import FACT, KEYS, ZONE
from tests.engines.test_lakes import (
    CHANGES,
    DAYS,
    MERGED,
    ON_DAYS,
    SALES,
    delta_table,
    iceberg_table,
    in_order,
)
from tests.pages import PROJECT, blocks

PAGE = (PROJECT / "docs" / "guides" / "other-engines.md").read_text()


def run(start: str, **names: Any) -> dict[str, Any]:
    """Runs the block of the page that begins with an import and has ``start``."""
    (found,) = [block.text for block in blocks(PAGE) if start in block.text]
    exec(compile(found, "other-engines.md", "exec"), names)
    return names


def test_the_partitions_in_four_engines(lake):
    import datafusion
    import duckdb

    sql = f"SELECT f.id FROM {FACT} f JOIN {KEYS} s ON f.k = s.k AND s.g < 3"
    scan = scan_of(lake.descriptor(sql), FACT, ZONE)
    text = "arrow.dataset(scan)"
    (block,) = [each for each in blocks(PAGE) if text in each.text]
    names = {"scan": scan, "connection": duckdb.connect(), "context": datafusion.SessionContext()}
    exec(block.text.replace('"price"', '"id"'), names)
    found = [
        names["rows"]["id"].to_pylist(),
        names["frame"]["id"].to_list(),
        names["view"].to_arrow_table()["id"].to_pylist(),
        names["context"].sql("SELECT id FROM sales").to_arrow_table()["id"].to_pylist(),
    ]
    ids = sorted(id_ for part in scan.partitions for id_ in lake.ids[part.location])
    assert [sorted(each) for each in found] == [ids] * 4


def test_reads_of_lakes(tmp_path):
    tables = {
        "iceberg_table": iceberg_table(tmp_path / "iceberg", SALES, "day"),
        "delta_table": delta_table(tmp_path / "delta", SALES, "day"),
    }
    found = run("reader = delta_table", scan=ON_DAYS, **tables)
    ids = sorted(row["id"] for row in SALES.to_pylist() if row["day"] in DAYS[:2])
    assert sorted(found["rows"]["id"].to_pylist()) == ids
    assert sum(batch.num_rows for batch in found["reader"]) == len(ids)


def test_merges_of_lakes(tmp_path):
    tables = {
        "iceberg_table": iceberg_table(tmp_path / "iceberg", SALES, "day"),
        "delta_table": delta_table(tmp_path / "delta", SALES, "day"),
    }
    run("iceberg.upsert(iceberg_table", scan=ON_DAYS, changes=CHANGES, **tables)
    assert in_order(tables["iceberg_table"].scan().to_arrow()) == MERGED
    assert in_order(tables["delta_table"].to_pyarrow_table()) == MERGED


@pytest.mark.parametrize("name", ["check_unchanged", "located", "pruned_scan"])
def test_functions_that_the_text_names_are_there(name):
    from airflow_hive_opt.engines import locations, scan, small_tables

    assert name in PAGE
    assert any(hasattr(module, name) for module in (locations, scan, small_tables))
