"""The report of a run: its headline, its summary and its file."""

import dataclasses
import json

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import Decision, SourceKeys
from airflow_hive_opt.documents.report import (
    Report,
    headline,
    keep_report,
    read_report,
    report_path,
    unpruned,
)
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.scan_ref import ScanRef
from tests.documents.test_descriptor import SALES, descriptor

STORE_SALES = ScanRef("ss", "default.store_sales", (14, 25), "ss")


def of(kept: int, total: int, keys: int):
    base = descriptor()
    target = dataclasses.replace(
        base.targets[0],
        scan=STORE_SALES,
        pruned_columns=("ss_sold_date_sk",),
        partitions=tuple(Partition((str(n),)) for n in range(kept)),
        total=total,
        sources=(SourceKeys(("d",), "date_dim", "SELECT", keys),),
    )
    decision = Decision(STORE_SALES, "PRUNED", "why")
    return dataclasses.replace(base, targets=(target,), decisions=(decision,))


def test_the_headline_counts_kept_partitions_and_keys():
    assert headline(of(28, 1823, 31)) == (
        "kept 28 of 1,823 partitions (98.5 % pruned): "
        "store_sales.ss_sold_date_sk by 31 keys of date_dim"
    )
    assert headline(of(0, 1, 1)) == (
        "kept 0 of 1 partition (100.0 % pruned): store_sales.ss_sold_date_sk by 1 key of date_dim"
    )
    assert headline(of(0, 0, 2)).startswith("kept 0 of 0 partitions: ")


def test_the_headline_lists_several_pruned_columns():
    base = of(1, 2, 3)
    target = dataclasses.replace(base.targets[0], pruned_columns=("a", "b"))
    assert "store_sales.(a, b) by" in headline(dataclasses.replace(base, targets=(target,)))


def test_the_headline_says_why_nothing_was_pruned():
    whole = Decision(SALES, "PRESERVED_SIDE", "because")
    found = dataclasses.replace(descriptor(), targets=(), decisions=(whole,))
    line = "s reads all partitions, PRESERVED_SIDE: because"
    assert headline(found) == f"pruned nothing: {line}"
    assert unpruned(found) == [line]
    nothing = dataclasses.replace(found, decisions=())
    assert headline(nothing) == "nothing to prune: the statement reads no partitioned table"


def test_the_summary_has_figures_and_no_partitions():
    report = Report(
        of(28, 1823, 31), "file:/x", {"map join": 1.23456}, {"map join": Work(3, 28, 30)}
    )
    summary = report.summary()
    assert summary["kept"] == 28
    assert summary["total"] == 1823
    assert summary["reason"] == "PRUNED"
    assert summary["seconds"] == {"map join": 1.235}
    assert summary["work"]["map join"]["partitions_fetched"] == 28
    assert "partitions" not in summary


def test_the_report_is_stored_beside_the_descriptor(tmp_path):
    report = Report(of(28, 1823, 31), "file:/x", {"map join": 1.2}, {"map join": None})
    path = UPath(tmp_path) / "1.json"
    keep_report(report, path)
    kept = report_path(path)
    assert kept.name == "1.report.json"
    assert read_report(kept).summary == report.summary()
    kept.write_text(json.dumps(report.summary()))
    with pytest.raises(DescriptorError, match=r"the report .* is refused"):
        read_report(kept)


def test_a_report_that_can_not_be_stored_is_a_line_in_the_log(tmp_path, caplog):
    (tmp_path / "1.report.json").mkdir()
    keep_report(Report(of(1, 2, 3), "file:/x"), UPath(tmp_path) / "1.json")
    assert "the report can't be stored: can't write" in caplog.text
    no_json = Report(of(1, 2, 3), "file:/x", ways={STORE_SALES: object()})
    keep_report(no_json, UPath(tmp_path) / "2.json")
    assert "JSON can't represent" in caplog.text
