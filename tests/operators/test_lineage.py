"""The lineage events, checked with OpenLineage's own library."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from openlineage.client.serde import Serde

from airflow_hive_opt.documents.descriptor import Decision, Descriptor, Target, decode, write
from airflow_hive_opt.documents.report import descriptor_summary
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.provider.lineage import MOST_PARTITIONS, lineage_of, namespace_of
from airflow_hive_opt.statement.scan_ref import ScanRef
from tests.versions.installed import needs_airflow

SQL = "INSERT INTO dw.result SELECT * FROM dw.fact f JOIN days d ON f.ds = d.ds"
FACT = Target(
    scan=ScanRef("f", "dw.fact", (0, 7), "f"),
    text="dw.fact",
    aliased=True,
    columns=("ds", "n"),
    types=("string", "int"),
    pruned_columns=("ds",),
    visible_columns=("ds", "n"),
    location="file:/warehouse/sales",
    partitions=(Partition(("a/b", None)), Partition(("c", "2"))),
    total=9,
    path="fast",
    filter=None,
    sources=(),
)


OTHER = ScanRef("f", "dw.fact", (60, 67), "f (line 2)")


def pruned(target):
    return Decision(target.scan, "PRUNED", "")


@pytest.fixture
def told(tmp_path):
    """The event's content for a run with the given targets and decisions."""
    from upath import UPath

    def tell(targets=(FACT,), decisions=None, sql=SQL, joined=True, namespace="hive://h"):
        decisions = (pruned(FACT),) if decisions is None else decisions
        descriptor = Descriptor("q", "2026-01-01T00:00:00+00:00", targets, decisions)
        path = UPath(tmp_path / "1.json")
        write(descriptor, path)
        summary = {**descriptor_summary(descriptor, str(path)), "application_id": "app-1"}
        found = lineage_of(sql, summary, joined, namespace)
        return json.loads(Serde.to_json(found))

    return tell


def partitions_of(told, name="dw.fact"):
    (found,) = [each for each in told["inputs"] if each["name"] == name]
    subset = found.get("inputFacets", {}).get("subset")
    return subset and [each["identifier"] for each in subset["inputCondition"]["partitions"]]


def test_lineage_events_have_the_tables_and_the_partitions_read(told):
    event = told()
    assert [(each["namespace"], each["name"]) for each in event["inputs"]] == [
        ("hive://h", "default.days"),
        ("hive://h", "dw.fact"),
    ]
    assert [each["name"] for each in event["outputs"]] == ["dw.result"]
    assert partitions_of(event) == ["ds=a%2Fb/n=__HIVE_DEFAULT_PARTITION__", "ds=c/n=2"]
    subset = event["inputs"][1]["inputFacets"]["subset"]["inputCondition"]
    assert subset["type"] == "partition"
    dimensions = {"ds": "a/b", "n": "__HIVE_DEFAULT_PARTITION__"}
    assert subset["partitions"][0]["dimensions"] == dimensions
    pruning = event["run_facets"]["hiveOpt_pruning"]
    assert (pruning["kept"], pruning["total"], pruning["reason"]) == (2, 9, "PRUNED")
    assert event["run_facets"]["externalQuery"]["externalQueryId"] == "app-1"
    assert event["job_facets"]["sql"]["query"] == SQL


def test_lineage_events_merge_the_partitions_of_two_scans_of_a_table(told):
    other = replace(FACT, scan=OTHER, partitions=(Partition(("c", "2")), Partition(("d", "3"))))
    event = told((FACT, other), (pruned(FACT), pruned(other)))
    assert len(partitions_of(event)) == 3


def test_a_table_that_one_scan_reads_whole_has_no_partitions_in_lineage_events(told):
    event = told(decisions=(pruned(FACT), Decision(OTHER, "PRESERVED_SIDE", "")))
    assert partitions_of(event) is None


def test_too_many_partitions_are_left_out_of_lineage_events(told):
    many = tuple(Partition((str(n), "1")) for n in range(MOST_PARTITIONS + 1))
    event = told((replace(FACT, partitions=many),))
    assert partitions_of(event) is None
    assert event["run_facets"]["hiveOpt_pruning"]["kept"] == MOST_PARTITIONS + 1


def test_a_run_that_did_not_join_has_no_inputs_in_lineage_events(told):
    event = told(joined=False)
    assert (event["inputs"], event["outputs"]) == ([], [])
    assert event["run_facets"]["hiveOpt_pruning"]["kept"] == 2
    assert lineage_of(SQL, None, False, None).run_facets == {}


def test_a_statement_that_can_not_be_parsed_has_no_inputs_in_lineage_events(told):
    event = told(sql="FROM x |> SELECT y |> nonsense (", decisions=(), targets=())
    assert (event["inputs"], event["outputs"]) == ([], [])


def test_the_namespace_of_lineage_events_is_configurable(told, monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__NAMESPACE", "ours")
    assert told(namespace=None)["inputs"][0]["namespace"] == "ours"
    assert namespace_of({"spark.sql.shuffle.partitions": "3"}) is None


@needs_airflow("3.0")
def test_lineage_events_read_a_descriptor_through_an_airflow_connection(told, tmp_path):
    """An object store that only its connection's file system reaches; a mock of a cloud's."""
    from airflow.providers.common.compat.sdk import ObjectStoragePath
    from airflow.sdk.io import attach
    from fsspec.implementations.dirfs import DirFileSystem

    told()
    attach(protocol="s3", conn_id="lake", fs=DirFileSystem(str(tmp_path)))
    uri = "s3://lake@bucket/1.json"
    (tmp_path / "bucket").mkdir()
    (tmp_path / "1.json").rename(tmp_path / "bucket" / "1.json")
    descriptor = decode(ObjectStoragePath(uri).read_bytes())
    summary = descriptor_summary(descriptor, uri)
    found = json.loads(Serde.to_json(lineage_of(SQL, summary, True, "hive://h")))
    assert partitions_of(found) == ["ds=a%2Fb/n=__HIVE_DEFAULT_PARTITION__", "ds=c/n=2"]
    assert found["run_facets"]["hiveOpt_pruning"]["descriptor"] == uri


def test_lineage_events_without_a_descriptor_still_have_the_tables(told, tmp_path, caplog):
    told()
    summary = {"uri": str(tmp_path / "gone.json"), "kept": 2, "total": 9, "reason": "PRUNED"}
    summary["decisions"] = [{"alias": "f", "table": "dw.fact", "reason": "PRUNED"}]
    found = lineage_of(SQL, summary, True, "hive://h")
    assert [each.name for each in found.inputs] == ["default.days", "dw.fact"]
    assert all(not each.inputFacets for each in found.inputs)
    assert "lineage events have no partitions" in caplog.text
