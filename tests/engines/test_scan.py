"""What is read from a descriptor, and what is refused, each with one line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.engines import arrow, datafusion, delta, duckdb, iceberg, polars
from airflow_hive_opt.engines.conditions import IsIn, condition_of
from airflow_hive_opt.engines.files import files_of
from airflow_hive_opt.engines.locations import located
from airflow_hive_opt.engines.scan import EngineError, pruned_scan, scan_of
from airflow_hive_opt.engines.small_tables import check_unchanged
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.statement.scan_ref import ScanRef
from tests.engines.lake_scans import descriptor_of, filter_on, lake_scan
from tests.engines.tables import FACT, KEYS, ZONE

JOIN = f"SELECT f.id FROM {FACT} f JOIN {KEYS} s ON f.k = s.k AND s.g = {{}}"


@pytest.fixture(scope="module")
def output(lake):
    return lake.local_task(JOIN.format(3))


def test_a_scan_is_read_from_the_output_of_the_task(lake, output):
    scan = pruned_scan(output, "LAKE.Fact", ZONE)
    assert (scan.table, scan.location) == (FACT, f"file:{lake.folder}/fact")
    assert (len(scan.partitions), scan.pruned_columns) == (output["kept"], ("k",))
    assert condition_of(scan) == IsIn("k", "string", (lake.keys[3][1],))


@pytest.mark.parametrize("changed", ["digest", "query_digest"])
def test_the_descriptor_of_another_attempt_or_statement_is_refused(output, changed):
    with pytest.raises(DescriptorError, match=r"is refused: it (is|belongs to) another"):
        pruned_scan({**output, changed: "0"}, FACT)


def test_a_changed_file_is_refused(lake, output, tmp_path):
    path = tmp_path / "1.json"
    path.write_text(Path(output["uri"]).read_text().replace("file:", "file:/"))
    with pytest.raises(DescriptorError, match=r"its digest does not match its content"):
        pruned_scan({**output, "uri": str(path)}, FACT)


@pytest.mark.parametrize("given", [None, {"uri": "x"}, "/a/descriptor.json"])
def test_something_else_than_an_output_is_refused(given):
    with pytest.raises(EngineError, match=r"^this is not the output of a LocalTaskOperator"):
        pruned_scan(given, FACT)


def test_another_table_is_refused(output):
    with pytest.raises(EngineError) as error:
        pruned_scan(output, "lake.facts")
    assert str(error.value) == "the descriptor has no partitions of lake.facts; it is of lake.fact"


def test_a_table_that_is_read_whole_somewhere_is_refused(lake):
    descriptor = lake.descriptor(f"{JOIN.format(3)} UNION ALL SELECT id FROM {FACT} g WHERE id > 0")
    with pytest.raises(EngineError, match=r"^lake.fact is read whole as g, NO_CONDITION_ON_PART"):
        scan_of(descriptor, FACT)


def test_a_statement_that_passes_through_is_refused(lake):
    descriptor = lake.descriptor("SHOW TABLES IN lake")
    with pytest.raises(EngineError, match=r"^the descriptor has no "):
        scan_of(descriptor, FACT)


def test_scans_of_one_table_are_read_together(lake):
    numbers = {row[1]: row[0] for row in lake.keys if row[1] in ("a", "x/y")}.values()
    sqls = [JOIN.format(number) for number in numbers]
    one, other = map(lake.scan, sqls)
    both = lake.scan(" UNION ALL ".join(sqls))
    assert {*both.partitions} == {*one.partitions, *other.partitions}
    assert len(both.partitions) > max(len(one.partitions), len(other.partitions))


def test_conditions_of_two_scans_are_alternatives():
    scans = [ScanRef(name, "lake.dw.sales", (at, at + 1), name) for at, name in enumerate("tu")]
    filters = [
        filter_on("day", "int", [1], scan=scans[0]),
        filter_on("n", "int", [2], scan=scans[0]),
        filter_on("day", "int", [3], scan=scans[1]),
    ]
    scan = scan_of(descriptor_of(filters), "lake.dw.sales")
    assert [len(each) for each in scan.alternatives] == [2, 1]
    assert datafusion.condition(scan) == '(("day" IN (1) AND "n" IN (2)) OR "day" IN (3))'


def test_a_time_zone_that_nobody_knows_is_asked_for(output):
    with pytest.raises(EngineError, match=r"^lake.fact.ts is a TIMESTAMP, and .*: give time_zone$"):
        files_of(pruned_scan(output, FACT))
    with pytest.raises(EngineError, match=r"^the time zone Europe/Nowhere is not known here$"):
        files_of(pruned_scan(output, FACT, "Europe/Nowhere"))


def test_a_value_that_is_none_of_its_type_is_refused(output):
    scan = pruned_scan(output, FACT, ZONE)
    others = [("n", "x"), ("n", "1_0"), ("n", str(2**63)), ("d", "2024-1-5"), ("d", "20240105")]
    others += [("m", "1.234"), ("m", "1000.00"), ("m", "NaN"), ("b", "maybe")]
    others += [("ts", "2024-01-31T10:00:00"), ("ts", "2024-01-31 10:00:00+01:00")]
    for column, text in others:
        values = [None] * len(scan.columns)
        values[scan.columns.index(column)] = text
        odd = replace(scan, partitions=(Partition(tuple(values), "file:/x"),))
        with pytest.raises(EngineError, match=rf"^lake.fact.{column} has a value that only Spark"):
            files_of(odd)


def test_folders_that_the_descriptor_does_not_have_come_from_the_metastore(lake):
    scan = lake.scan(JOIN.format(3))
    bare = replace(scan, partitions=tuple(Partition(p.values) for p in scan.partitions))
    with pytest.raises(EngineError, match=r"get it from the metastore with located\(\)$"):
        files_of(bare)
    gone = Partition(("gone", *scan.partitions[0].values[1:]))
    with lake.metastore() as metastore:
        found = located(replace(bare, partitions=(*bare.partitions, gone)), metastore)
    assert {p.location for p in found.partitions} == {p.location for p in scan.partitions}


def test_another_type_of_a_partition_column_is_refused(lake):
    scan = lake.scan(JOIN.format(3))
    other = replace(
        scan,
        types=("int", *scan.types[1:]),
        partitions=tuple(Partition(p.values) for p in scan.partitions),
    )
    with (
        lake.metastore() as metastore,
        pytest.raises(EngineError, match=r"are now k string, n bigint, .* and were k int, n "),
    ):
        located(other, metastore)


def test_a_folder_that_is_gone_is_one_line(lake):
    scan = lake.scan(JOIN.format(3))
    gone = replace(scan.partitions[0], location=f"file:{lake.folder}/gone")
    with pytest.raises(EngineError, match=r"^can't list the files of lake.fact: can't list .*gone"):
        files_of(replace(scan, partitions=(gone,)))


def test_no_rows_of_a_table_without_files_is_one_line(lake):
    scan = replace(lake.scan(JOIN.format(3)), partitions=(), location=f"file:{lake.folder}/gone")
    with pytest.raises(
        EngineError, match=r"^no row of lake.fact is needed, and its folder .*/gone"
    ):
        files_of(scan)


def test_a_small_table_that_has_changed_is_noticed(lake):
    descriptor = lake.descriptor(JOIN.format(3))
    check_unchanged(descriptor)
    added = lake.folder / "keys" / "part-1.parquet"
    added.write_text("x")
    try:
        with pytest.raises(EngineError, match=r"the small table lake.keys has changed since they"):
            check_unchanged(descriptor)
    finally:
        added.unlink()


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        ("duckdb", "worker", lambda scan: duckdb.relation(None, scan)),
        ("pyarrow", "worker", arrow.dataset),
        ("pyarrow", "worker", arrow.expression),
        ("polars", "polars", polars.lazy_frame),
        ("polars", "polars", polars.predicate),
        ("pyiceberg", "iceberg", lambda scan: iceberg.row_filter(scan, None)),
        ("deltalake", "delta", lambda scan: delta.predicate(scan, None)),
        ("datafusion", "datafusion", lambda scan: datafusion.register(None, "t", scan)),
    ],
)
def test_an_engine_that_is_not_installed_is_one_line(monkeypatch, library, extra, call):
    monkeypatch.setattr(
        "airflow_hive_opt.engines.installed.find_spec", lambda name: name != library or None
    )
    with pytest.raises(EngineError) as error:
        call(lake_scan(filter_on("day", "int", [1])))
    expected = f"{library} is not installed: pip install 'airflow-hive-opt[{extra}]'"
    assert str(error.value) == expected


def test_reading_a_descriptor_loads_no_engine():
    script = (
        "import sys, airflow_hive_opt.engines.scan, airflow_hive_opt.engines.trino, "
        "airflow_hive_opt.engines.duckdb, airflow_hive_opt.engines.iceberg; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint(
        {"airflow", "pyspark", "sqlglot", "duckdb", "pyarrow", "polars", "pyiceberg", "datafusion"}
    )


def test_partitions_that_share_a_folder_are_refused(lake):
    """The rows of its files have the values of both partitions."""
    scan = lake.scan(JOIN.format(3))
    one, other, *rest = scan.partitions
    shared = replace(other, location=one.location)
    with pytest.raises(EngineError, match="two partitions of .* have the same file"):
        files_of(replace(scan, partitions=(one, shared, *rest)))
