"""Tables that Spark has made in a Hive Metastore are the same without Spark, and so are plans.

Another process has the Spark: this one's has a metastore of its own.
"""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from packaging.version import Version

from airflow_hive_opt.metastores.glue.connection import GlueSettings
from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.statement_catalog import Elsewhere, StatementCatalog
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import Column, Table
from tests.metastores import hive_made
from tests.metastores.spark_side import planned, statements
from tests.services.glue_stand_in import REGION, glue_stand_in
from tests.services.java_options import SHORT_LIVED
from tests.services.thrift import thrift_client
from tests.versions.installed import SPARK

pytest.importorskip("moto")  # environments of other versions do not have it
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(Version("4.3") > SPARK, reason="the tables are the newest Spark's"),
]

# Fields that Spark's catalog does not fill: they are inputs of Hive's stages alone.
OF_HIVE = ("rows", "files", "format", "view")
VIEWS = ("compensating", "evolving", "named_view", "view_of_a_view", "view_of_one")
LAKE = {"in_delta": "delta", "in_hudi": "hudi", "in_iceberg": "iceberg"}


@pytest.fixture(scope="module")
def seen(metastore_service, tmp_path_factory):
    """What Spark has seen."""
    folder = tmp_path_factory.mktemp("spark")
    hive_made.make(metastore_service, str(folder / "hive_made"))
    output = folder / "seen.pickle"
    conf = {**metastore_service.spark_conf(), "spark.driver.extraJavaOptions": SHORT_LIVED}
    pairs = [f"{name}={value}" for name, value in conf.items()]
    command = [sys.executable, "-m", "tests.metastores.spark_side", str(folder), str(output)]
    done = subprocess.run([*command, *pairs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5_000:]
    return pickle.loads(output.read_bytes())


@pytest.fixture
def thrift(metastore_service, seen):
    with ThriftMetastore(metastore_service.uri, "facts", timeout=20) as client:
        yield client


def measured(storage: Storage) -> int:
    """The bytes of the files in a folder of this machine, without those that Spark ignores."""
    files = Path(storage.location.removeprefix("file:")).rglob("[!._]*")
    return sum(path.stat().st_size for path in files if path.is_file())


def without(table: Table, *fields: str) -> Table:
    """The table with the fields emptied that are not compared."""
    defaults = {each.name: each.default for each in dataclasses.fields(Table)}
    emptied = {name: defaults[name] for name in (*OF_HIVE, *fields)}
    ordered = {} if "distinct" in fields else {"distinct": tuple(sorted(table.distinct))}
    return dataclasses.replace(table, **ordered, **emptied)


def test_tables_that_spark_made_are_the_same_without_spark(seen, thrift):
    catalog = StatementCatalog(thrift, "facts", measured=measured)
    assert len(seen["tables"]) >= 50
    for name, spark in seen["tables"].items():
        if name in LAKE:
            continue
        # Spark estimates a view's size from its plan; the sum of its tables' is near enough
        left_out = ["total_bytes"] if name in VIEWS else []
        assert without(catalog.table(name), *left_out) == without(spark, *left_out), name


def test_tables_that_hive_made_are_the_same_without_spark(seen, thrift):
    catalog = StatementCatalog(thrift, hive_made.DATABASE, measured=measured)
    assert seen["hive_made"].keys() == {*hive_made.TABLES, "view"}
    for name, spark in seen["hive_made"].items():
        # of a view, and of CHAR columns that it pads, Spark estimates the size from a plan
        left_out = ["total_bytes"] if name in ("types", "view") else []
        assert without(catalog.table(name), *left_out) == without(spark, *left_out), name
    assert catalog.table("view").view.startswith("SELECT `sized`.`k`")


def test_some_sizes_and_lake_formats_are_known_to_spark_only(seen, thrift):
    """Sizes that nobody has counted, and tables that list their own files."""
    counted = {
        name
        for name, spark in seen["tables"].items()
        if name not in LAKE and thrift.table(name).total_bytes != spark.total_bytes
    }
    unpartitioned = {name for name in counted if not thrift.table(name).partition_columns}
    assert counted == unpartitioned  # Spark lists the files of these
    assert all(thrift.table(name).total_bytes is None for name in counted)
    assert {*VIEWS, "by_day", "own_csv", "hive_parquet"} <= counted
    assert "hive_csv" not in counted  # Hive has written it, and has counted
    assert thrift.table("empty_text").total_bytes == UNKNOWN_SIZE  # for Spark too
    for name, format_ in LAKE.items():
        found, spark = thrift.table(name), seen["tables"][name]
        assert (found.provider, found.partition_columns[0].name) == (format_, "ds")
        assert not found.partitions_in_metastore
        # Spark knows the table only with the format's jars
        assert (spark.provider, spark.partitions_in_metastore) == ("", False)


def test_the_size_of_a_view_is_the_sum_of_its_tables(seen, thrift):
    catalog = StatementCatalog(thrift, "facts", measured=measured)
    assert catalog.table("named_view").total_bytes == catalog.table("own_parquet").total_bytes
    # of a partitioned table that nobody has analyzed
    assert catalog.table("view_of_a_view").total_bytes == UNKNOWN_SIZE
    assert seen["tables"]["view_of_a_view"].total_bytes > 2**60


def test_plans_are_the_same_without_spark(seen, thrift):
    asked = list(statements())
    assert len(asked) == len(seen["plans"]) > 150
    for (database, sql), spark in zip(asked, seen["plans"], strict=True):
        catalog = StatementCatalog(thrift, database, measured=measured)
        assert planned(sql, catalog) == spark, sql


def test_the_tables_of_a_statement_take_one_call(seen, thrift):
    catalog = StatementCatalog(thrift, "facts")
    catalog.look_up_together("SELECT 1 FROM own_orc o JOIN by_day b ON o.ds = b.day")
    assert catalog.table("own_orc").partition_columns == (Column("ds", "string"),)
    assert catalog.table("Facts.BY_DAY").name == "facts.by_day"
    assert thrift.work() == Work(metastore_calls=1)
    catalog.look_up_together("SELECT 1 FROM by_day, wide, nosuch")
    assert catalog.table("nosuch") is None
    assert thrift.work() == Work(metastore_calls=3)  # what is missing is asked for alone
    catalog.look_up_together("SELECT 1 FROM view_of_a_view v, own_text t")
    assert catalog.table("view_of_one").definition is not None
    assert thrift.work() == Work(metastore_calls=6)  # each table below a view is alone
    catalog.look_up_together("SELECT 1 FROM nosuch.a, nosuch.b")
    assert catalog.table("nosuch.a") is None


def test_names_of_other_catalogs_are_not_looked_up(seen, thrift):
    catalog = StatementCatalog(thrift, "facts", catalogs=["Lake"])
    for name in ("lake.t", "other.facts.by_day", "LAKE.s.t", "global_temp.v"):
        with pytest.raises(Elsewhere, match=f"^{name} is not a table of the metastore"):
            catalog.table(name)
        catalog.look_up_together(f"SELECT 1 FROM {name}")
    assert catalog.table("spark_catalog.facts.by_day").name == "facts.by_day"
    assert catalog.table("nosuch.by_day") is None
    assert thrift.work() == Work(metastore_calls=2)


def test_the_storage_of_a_table_has_format_and_location(seen, thrift):
    formats = {
        name: thrift.storage(thrift.table(name)).format
        for name in seen["tables"]
        if name not in VIEWS
    }
    by_format = {
        "parquet": {"hive_parquet", "own_parquet", "by_day", "collated", "wide"},
        "orc": {"hive_orc", "own_orc", "hive_buckets"},
        "text": {"hive_text", "plain_text"},
        "avro": {"hive_avro"},
        "csv": {"own_csv", "own_external_csv"},
        "json": {"own_json"},
        # a SerDe of its own, another container, one line a row, rows in deltas
        "": {"hive_csv", "hive_rc", "hive_sequence", "own_text", "acid"},
    }
    for format_, names in by_format.items():
        assert {name for name, found in formats.items() if found == format_} >= names, format_
    csv = thrift.storage(thrift.table("own_csv"))
    assert (csv.serde, csv.properties) == ("", {"header": "true", "sep": ";"})
    text = thrift.storage(thrift.table("hive_text"))
    assert text.serde.endswith(".LazySimpleSerDe")
    assert text.properties["field.delim"] == "|"
    for name, spark in seen["tables"].items():
        storage = thrift.storage(thrift.table(name))
        if name in VIEWS:
            assert storage is None
        elif name not in LAKE:
            assert storage.location == spark.location
    external = thrift.storage(thrift.table("own_external_csv"))
    assert external.location.endswith("/own csv")
    assert thrift.storage(thrift.table("hive_external")).location.endswith("/ex ternal%20")


def test_the_storage_of_each_partition_is_its_own(seen, thrift):
    table = thrift.table("hive_orc")
    gone = Partition(("2020-01-01", "9"))
    partitions = [*thrift.partition_names(table), gone]
    calls = thrift.work().metastore_calls
    found = thrift.partition_storages(table, partitions)
    assert thrift.work().metastore_calls == calls + 1
    assert found.pop() is None
    assert {(each.format, each.serde.rpartition(".")[2]) for each in found} == {("orc", "OrcSerde")}
    folders = {unquote(each.location.rpartition("/hive_orc/")[2]) for each in found}
    assert folders == {"Ds=2020-01-01/n=7", "Ds=__HIVE_DEFAULT_PARTITION__/n=8"}
    own = thrift.table("own_orc")
    found = thrift.partition_storages(own, thrift.partition_names(own))
    assert {(each.format, each.serde) for each in found} == {("orc", "")}
    assert thrift.partition_storages(thrift.table("view_of_one"), [gone]) == [None]


def test_the_location_of_the_default_database_is_found(seen, thrift):
    assert thrift.default_location() == seen["default"]


def test_glue_returns_the_same_tables_and_storages_as_thrift(
    seen, thrift, metastore_service, monkeypatch
):
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "x")
    with thrift_client(metastore_service) as client, glue_stand_in() as stand_in:
        copied(client, stand_in.client())
        with GlueMetastore(GlueSettings(REGION, stand_in.endpoint), "facts") as glue:
            glue.look_up(seen["tables"])
            stand_in.forget()
            for name in seen["tables"]:
                assert glue.table(name) == thrift.table(name), name
                found, same = (each.storage(each.table(name)) for each in (glue, thrift))
                assert found == same, name
            assert stand_in.calls.total() == 0
            for name in ("hive_orc", "own_orc"):
                table = thrift.table(name)
                gone = Partition(("7",) * len(table.partition_columns))
                partitions = [*thrift.partition_names(table), gone]
                same = thrift.partition_storages(table, partitions)
                assert glue.partition_storages(glue.table(name), partitions) == same
            assert stand_in.calls == {"BatchGetPartition": 2}
            assert glue.default_location() == seen["default"]


def copied(client, glue) -> None:
    """Copies the tables of ``facts`` from a Hive Metastore to Glue."""
    for name in ("default", "facts"):
        location = client.get_database(name).locationUri
        glue.create_database(DatabaseInput={"Name": name, "LocationUri": location})
    for name in client.get_all_tables("facts"):
        table = client.get_table("facts", name)
        glue.create_table(
            DatabaseName="facts",
            TableInput={
                "Name": name,
                "TableType": table.tableType,
                "Parameters": table.parameters,
                "PartitionKeys": columns(table.partitionKeys),
                "StorageDescriptor": storage(table.sd),
                **({"ViewExpandedText": text} if (text := table.viewExpandedText) else {}),
            },
        )
        if table.partitionKeys:
            for part in client.get_partitions("facts", name, -1):
                glue.create_partition(
                    DatabaseName="facts",
                    TableName=name,
                    PartitionInput={
                        "Values": part.values,
                        "Parameters": part.parameters,
                        "StorageDescriptor": storage(part.sd),
                    },
                )


def columns(fields):
    return [{"Name": field.name, "Type": field.type} for field in fields]


def storage(hive):
    return {
        "Columns": columns(hive.cols),
        **({"Location": hive.location} if hive.location else {}),
        "InputFormat": hive.inputFormat,
        "NumberOfBuckets": hive.numBuckets,
        "BucketColumns": hive.bucketCols,
        "SortColumns": [{"Column": key.col, "SortOrder": key.order} for key in hive.sortCols],
        "SerdeInfo": {
            "SerializationLibrary": hive.serdeInfo.serializationLib,
            "Parameters": hive.serdeInfo.parameters,
        },
    }
