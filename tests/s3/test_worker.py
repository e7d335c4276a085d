"""The worker's local task on S3: moto's server on loopback has the tables and their files.

The files are read through Airflow's connection, with the file system of the Amazon provider.
"""

from __future__ import annotations

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_hive_opt.provider import worker
from tests.services.glue_stand_in import REGION, glue_stand_in
from tests.services.processes import free_port
from tests.worker.tasks import HERE, Tasks, descriptor_of, values_of, worker_job

pytest.importorskip("s3fs")  # make test-s3 has it

DAYS = [f"day-{number:03}" for number in range(40)]
SQL = "SELECT f.day FROM lake.fact f JOIN lake.{} k ON f.day = k.day AND k.n < 3"
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet"
READ_AS = {
    "parquet": (f"{_PARQUET}.MapredParquetInputFormat", f"{_PARQUET}.serde.ParquetHiveSerDe"),
    "text": (
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    ),
}
KEYS = pa.table({"n": pa.array(range(40), pa.int32()), "day": DAYS})
CATALOGS = {
    "iceberg": "org.apache.iceberg.spark.SparkSessionCatalog",
    "delta": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class Lake:
    """A bucket, and a database of tables in it."""

    def __init__(self, stand_in) -> None:
        import boto3
        from moto.s3.models import s3_backends

        s3_backends.reset()
        self.stand_in = stand_in
        self.endpoint = f"http://{stand_in.moto[0]}:{stand_in.moto[1]}"
        self.s3 = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        place = {"LocationConstraint": REGION}
        self.s3.create_bucket(Bucket="bucket", CreateBucketConfiguration=place)
        client = stand_in.client()
        client.create_database(DatabaseInput={"Name": "default", "LocationUri": "s3://bucket/w"})
        client.create_database(DatabaseInput={"Name": "lake"})

    def put(self, key: str, data: bytes) -> None:
        self.s3.put_object(Bucket="bucket", Key=key, Body=data)

    def table(self, name, location, format_="parquet", keys=(), parameters=None) -> None:
        columns = [] if keys else [("n", "int"), ("day", "string")]
        input_, serde = READ_AS[format_]
        self.stand_in.client().create_table(
            DatabaseName="lake",
            TableInput={
                "Name": name,
                "TableType": "EXTERNAL_TABLE",
                "Parameters": {"EXTERNAL": "TRUE", "totalSize": "900", **(parameters or {})},
                "PartitionKeys": [{"Name": key, "Type": "string"} for key in keys],
                "StorageDescriptor": {
                    "Columns": [{"Name": column, "Type": type_} for column, type_ in columns],
                    "Location": location,
                    "InputFormat": input_,
                    "OutputFormat": "",
                    "SerdeInfo": {"SerializationLibrary": serde, "Parameters": {}},
                },
            },
        )


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s3")
    with glue_stand_in() as stand_in:
        found = Lake(stand_in)
        found.table("fact", "s3://bucket/fact", keys=("day",))
        stand_in.add_partitions("lake.fact", [(day,) for day in DAYS])
        _hive(found)
        _delta(found, folder)
        _iceberg(found)
        yield found


def _hive(lake: Lake) -> None:
    for number in range(2):
        file = io.BytesIO()
        pq.write_table(KEYS.slice(20 * number, 20), file)
        lake.put(f"keys/part-{number}.parquet", file.getvalue())
    lake.put("keys/", b"")  # the mark of a folder
    lake.put("keys/_SUCCESS", b"")
    lake.put("keys_of_others/part-0.parquet", b"no Parquet")
    for scheme in ("s3", "s3a", "s3n"):
        lake.table(f"keys_{scheme}", f"{scheme}://bucket/keys")
    lines = "".join(f"{number}\x01{day}\n" for number, day in enumerate(DAYS))
    lake.put("lines/a%20b.gz", gzip.compress(lines.encode()))
    lake.table("lines", "s3a://bucket/lines/", "text")
    lake.table("none", "s3://bucket/none")
    lake.table("elsewhere", "s3://nobody/keys")
    lake.put("nested/inside/part-0.parquet", file.getvalue())
    lake.table("nested", "s3://bucket/nested")


def _delta(lake: Lake, folder) -> None:
    from deltalake import write_deltalake

    place = folder / "delta"
    write_deltalake(place, KEYS, partition_by=["n"])
    for file in place.rglob("*"):
        if file.is_file():
            lake.put(f"delta/{file.relative_to(place)}", file.read_bytes())
    entry = {"spark.sql.sources.provider": "delta"}
    lake.table("delta", "s3a://bucket/delta", parameters=entry)


def _iceberg(lake: Lake) -> None:
    from pyiceberg.catalog.memory import InMemoryCatalog

    properties = {
        "warehouse": "s3://bucket/iceberg",
        "s3.endpoint": lake.endpoint,
        "s3.region": REGION,
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
    }
    catalog = InMemoryCatalog("c", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.keys", KEYS.schema)
    table.append(KEYS)
    table.append(KEYS)
    entry = {"table_type": "ICEBERG", "metadata_location": table.metadata_location}
    lake.table("iceberg", table.location(), parameters=entry)


@pytest.fixture
def tasks(lake, tmp_path, monkeypatch):
    lake.stand_in.forget()
    for name, endpoint in (("METASTORE", lake.stand_in.endpoint), ("STORAGE", lake.endpoint)):
        connection = {
            "conn_type": "aws",
            "login": "a",
            "password": "b",
            "extra": {"region_name": REGION, "endpoint_url": endpoint},
        }
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(connection))
    return Tasks(None, tmp_path)


@pytest.mark.parametrize("name", ["keys_s3", "keys_s3a", "keys_s3n", "lines", "delta", "iceberg"])
def test_keys(tasks, name):
    conf = {}
    if name in CATALOGS:
        conf = {"spark.sql.catalog.spark_catalog": CATALOGS[name]}
    pruned = tasks.prune(SQL.format(name), storage_conn_id="storage", conf=conf)
    assert (pruned["kept"], pruned["total"], pruned["local_task"]) == (3, 40, "worker")
    descriptor = descriptor_of(pruned)
    assert values_of(descriptor) == [(day,) for day in DAYS[:3]]
    assert len(descriptor.small_tables) + len(descriptor.snapshots) == 1


def test_the_files_are_those_that_were_listed(tasks, lake):
    """Their sizes and times are in the descriptor, for the session that joins."""
    digests = []
    for _ in range(2):
        pruned = tasks.prune(SQL.format("keys_s3"), storage_conn_id="storage")
        (small,) = descriptor_of(pruned).small_tables
        digests.append(small.folders)
    assert digests[0] == digests[1]
    ((place, _),) = digests[0]
    assert place == "s3://bucket/keys"


def left(tasks, name, conn_id="storage"):
    """Why Spark does the local task."""
    job = worker_job(tasks, SQL.format(name))
    task = worker.WorkerLocalTask(job, "auto", HERE, {}, "metastore", conn_id)
    assert task.job_or_outcome() is job
    return task._answer.result()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none", "can't list s3://storage@bucket/none"),
        ("elsewhere", "can't list s3://storage@nobody/keys"),
        ("nested", "a folder inside a table's: inside"),
    ],
)
def test_what_is_left_to_spark(tasks, name, reason):
    assert reason in left(tasks, name)


def test_wrong_connections(tasks, monkeypatch):
    assert "can't list" in left(tasks, "keys_s3", "nobody")
    nowhere = f"http://127.0.0.1:{free_port()}"
    connection = {"conn_type": "aws", "login": "a", "password": "b", "extra": {}}
    connection["extra"] = {"region_name": REGION, "endpoint_url": nowhere}
    monkeypatch.setenv("AIRFLOW_CONN_NOWHERE", json.dumps(connection))
    with pytest.raises(AirflowFailException, match="can't list s3://nowhere@bucket"):
        tasks.prune(SQL.format("keys_s3"), storage_conn_id="nowhere")


def test_sizes_for_a_gate(tasks):
    """Those in the catalog; no file of the big table is listed."""
    pruned = tasks.prune(SQL.format("keys_s3"), storage_conn_id="storage", max_bytes=6)
    assert pruned["kept"] == 3


@pytest.mark.parametrize("scheme", ["gs", "hdfs", "abfss", "unknown"])
def test_storages_that_are_not_set_up(tasks, lake, scheme):
    """Their drivers are not installed, or answer nothing without a connection."""
    lake.table(f"on_{scheme}", f"{scheme}://place/keys")
    found = left(tasks, f"on_{scheme}", None)
    assert f"can't open {scheme}://place/keys" in found or "can't list" in found
