"""Tasks without a JVM on a metastore with Kerberos: a local task, and sensors after it."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from upath import UPath

from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.metastores.thrift.transport import Opener
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from airflow_hive_opt.triggers.partitions import RequiredPartitionsTrigger
from tests.services.kdc import REALM
from tests.services.thrift import add_partitions, create_database, create_table
from tests.worker.tasks import Tasks, descriptor_of, values_of

DAYS = [f"day-{number}" for number in range(10)]
SQL = "SELECT f.id FROM tasks.fact f JOIN tasks.keys k ON f.day = k.day AND k.id < {{ params.n }}"


@pytest.fixture(scope="module")
def client(with_kerberos, tmp_path_factory):
    """A database ``tasks`` with a table of ten days and their keys."""
    folder = tmp_path_factory.mktemp("tasks")
    _, transport = Opener(with_kerberos.security).open(with_kerberos.address, 20)
    client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))
    create_database(client, "tasks", str(folder))
    columns = [("id", "int"), ("day", "string")]
    create_table(client, "tasks.keys", columns, [], str(folder / "keys"))
    (folder / "keys").mkdir(exist_ok=True)
    rows = {"id": pa.array(range(10), pa.int32()), "day": DAYS}
    pq.write_table(pa.table(rows), folder / "keys" / "1.parquet")
    create_table(client, "tasks.fact", columns[:1], columns[1:], str(folder / "fact"))
    land(client, *DAYS)
    yield client
    transport.close()


def land(client, *days):
    parts = [((day,), f"/nowhere/{day}", {}) for day in days]
    add_partitions(client, "tasks.fact", [("id", "int")], parts)


def test_a_local_task_and_its_sensor_use_a_metastore_with_kerberos(
    with_kerberos, client, tmp_path, monkeypatch
):
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", with_kerberos.connection())
    tasks = Tasks(None, tmp_path)
    sql = SQL.replace("{{ params.n }}", "3")
    pruned = tasks.prune(sql)
    assert (pruned["local_task"], pruned["kept"], pruned["total"]) == ("worker", 3, 10)
    assert values_of(descriptor_of(pruned)) == [(day,) for day in DAYS[:3]]
    waiting = tasks.made(RequiredPartitionsSensor, sql, descriptor=pruned, deferrable=False)
    found = tasks.context("wait")
    waiting.render_template_fields(found)
    assert waiting.poke(found).xcom_value == {"required": 3}


@pytest.mark.parametrize("by", ["keytab", "cache"])
def test_a_deferred_sensor_goes_on_after_its_ticket_has_expired(
    with_kerberos, client, realm, tmp_path, monkeypatch, by
):
    """Its connection is closed too, as a server closes one that is idle."""
    principal, cache = f"waiting-{by}@{REALM}", tmp_path / "tickets"
    realm.add(principal, "-maxlife", "2sec")
    realm.kinit(principal, cache)
    given = {"keytab": str(realm.keytab(principal))} if by == "keytab" else {"keytab": ""}
    given["ccache"] = "" if by == "keytab" else f"FILE:{cache}"
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", with_kerberos.connection(principal, **given))
    day = f"late by {by}"
    list_ = RequiredPartitions(
        "q", (), "t", (Required("tasks.fact", ("day",), ("string",), ("day",), ((day,),)),)
    )
    required.write(list_, UPath(tmp_path / "list.json"))
    deadline = (datetime.now(timezone.utc) + timedelta(minutes=1)).isoformat()
    trigger = RequiredPartitionsTrigger(
        str(tmp_path / "list.json"), "q", (), "t", "metastore", 0, deadline
    )

    async def waits():
        first = await trigger.poll()
        land(client, day)
        time.sleep(3)
        trigger._metastore.close()
        if by == "cache":
            with pytest.raises(Exception, match="connection 'metastore': .*has lapsed"):
                await trigger.poll()
            realm.kinit(principal, cache)  # as airflow kerberos does
        second = await trigger.poll()
        await trigger.close()
        return first.found, second.found

    assert asyncio.run(waits()) == (False, True)
