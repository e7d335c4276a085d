"""The worker's local task on AWS Glue: a stand-in has the tables, a local folder their files."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_hive_opt.documents.binding import WORKER
from tests.pages import PROJECT, blocks
from tests.services.glue_stand_in import (
    REGION,
    create_databases,
    create_parquet_table,
    glue_stand_in,
)
from tests.worker.tasks import Tasks, descriptor_of, values_of

pytest.importorskip("moto")  # environments of other versions do not have it

SQL = "SELECT f.id FROM lake.fact f JOIN lake.keys k ON f.day = k.day AND k.n {}"
DAYS = [f"day-{number:03}" for number in range(300)]


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glue")
    with glue_stand_in() as stand_in:
        client = stand_in.client()
        create_databases(client, folder)
        keys = folder / "keys"
        keys.mkdir()
        numbers = pa.array(range(300), pa.int32())
        pq.write_table(pa.table({"n": numbers, "day": DAYS}), keys / "part-0.parquet")
        create_parquet_table(client, "keys", folder, [("n", "int"), ("day", "string")])
        create_parquet_table(client, "fact", folder, [("id", "int")], [("day", "string")])
        stand_in.add_partitions("lake.fact", [(day,) for day in DAYS])
        yield stand_in


@pytest.fixture
def tasks(glue, tmp_path, monkeypatch):
    glue.forget()
    connection = {
        "conn_type": "aws",
        "login": "x",
        "password": "x",
        "extra": {"region_name": REGION, "endpoint_url": glue.endpoint},
    }
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", json.dumps(connection))
    return Tasks(None, tmp_path)


def test_few_keys_on_glue_are_one_filter(tasks, glue):
    pruned = tasks.prune(SQL.format("< 10"))
    assert (pruned["kept"], pruned["total"], pruned["local_task"]) == (10, 300, "worker")
    descriptor = descriptor_of(pruned)
    assert values_of(descriptor) == [(day,) for day in DAYS[:10]]
    (target,) = descriptor.targets
    assert target.filter.count("'day-") == 10
    assert (descriptor.binding.reader, descriptor.binding.calls) == (WORKER, ())
    assert glue.calls["GetPartitions"] == 1
    assert glue.calls.total() == pruned["work"]["local task"]["metastore_calls"]


def test_more_keys_than_a_glue_filter_can_have_are_a_list_without_a_filter(tasks):
    pruned = tasks.prune(SQL.format("BETWEEN 50 AND 289") + " AND k.n % 2 = 0")
    (target,) = descriptor_of(pruned).targets
    assert (target.kept, target.filter) == (120, None)


def test_max_bytes_uses_the_sizes_in_glues_catalog(tasks):
    """The sizes are those in the catalog."""
    with pytest.raises(AirflowFailException, match="6 bytes, but max_bytes is 5"):
        tasks.prune(SQL.format("< 3"), max_bytes=5)
    assert tasks.prune(SQL.format("< 3"), max_bytes=6)["kept"] == 3


def test_the_documented_policy_allows_all_calls(tasks, glue):
    tasks.prune(SQL.format("< 10"))
    tasks.prune(SQL.format("< 3"), max_bytes=6)
    page = (PROJECT / "docs/guides/metastores/aws-glue.md").read_text()
    (policy,) = (json.loads(block.text) for block in blocks(page) if block.language == "json")
    (statement,) = policy["Statement"]
    assert {f"glue:{action}" for action in glue.calls} <= set(statement["Action"])


@pytest.mark.parametrize("fault", ["denied", "expired"])
def test_a_worker_without_permission_on_glue_fails_with_one_message(tasks, glue, fault):
    glue.fault = lambda number, action: fault
    with pytest.raises(
        AirflowFailException, match="can't run the local task: the metastore fails: AWS"
    ):
        tasks.prune(SQL.format("< 3"))
