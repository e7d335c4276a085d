"""AWS Glue from an ``aws`` connection: the hook, Spark's settings, and waiting for partitions.

moto has the partitions; the proxy before it fails on request.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime, timedelta, timezone
from types import ModuleType, SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.hooks.hive_metastore import HiveMetastoreHook, spark_conf_of
from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.provider import airflow_compat
from airflow_hive_opt.provider.waiting import poll_partitions
from airflow_hive_opt.triggers.partitions import RequiredPartitionsTrigger
from tests.services.glue_stand_in import REGION, glue_stand_in

pytest.importorskip("moto")  # environments of other versions do not have it

DAYS = [f"d{number:04}" for number in range(1_500)]
SECRETS = ("AKIASECRETID", "secret-of-tests", "token-of-tests")
TABLE = Required("lake.t", ("ds", "n"), ("string", "int"), ("ds", "n"), (("d0001", 1), ("d1", 1)))


@pytest.fixture(scope="module")
def glue():
    with glue_stand_in() as stand_in:
        values = [(day, "1") for day in DAYS]
        stand_in.create_table("lake.t", [("ds", "string"), ("n", "int")], values)
        stand_in.create_table("lake.texts", [("ds", "string")], [(day,) for day in DAYS])
        yield stand_in


@pytest.fixture(autouse=True)
def connection(glue, monkeypatch, tmp_path):
    glue.forget()
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    extra = {
        "region_name": REGION,
        "endpoint_url": glue.endpoint,
        "aws_session_token": SECRETS[2],
        "catalog_id": "123456789012",
    }
    found = {"conn_type": "aws", "login": SECRETS[0], "password": SECRETS[1], "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({**found, "schema": "lake"}))
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", json.dumps(found))


def test_the_hook_returns_a_glue_client(glue):
    with HiveMetastoreHook("lake").get_conn() as metastore:
        assert isinstance(metastore, GlueMetastore)
        assert metastore.table("t").name == "lake.t"
    assert HiveMetastoreHook("lake").test_connection() == (
        True,
        "the metastore AWS Glue answers, and has the database lake",
    )
    glue.fault = lambda number, action: "expired"
    good, said = HiveMetastoreHook().test_connection()
    assert not good
    assert "renew them" in said


def test_the_settings_for_spark_have_no_secret(glue):
    assert spark_conf_of("lake") == {
        "spark.hadoop.hive.metastore.client.factory.class": (
            "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
        ),
        "spark.hadoop.hive.metastore.glue.catalogid": "123456789012",
        "spark.hadoop.aws.region": REGION,
        "spark.hadoop.aws.glue.endpoint": glue.endpoint,
    }


def test_the_requests_are_signed_with_the_connections_key(glue, monkeypatch):
    metastore = HiveMetastoreHook("lake").get_conn()
    signed = []
    events = metastore._glue._client.meta.events
    events.register("before-send.glue", lambda request, **_: signed.append(request.headers))
    metastore.table("t")
    (headers,) = signed
    assert SECRETS[0].encode() in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == SECRETS[2].encode()


def test_the_session_of_the_amazon_provider_is_used_if_it_is_installed(glue, monkeypatch):
    """The provider is not installed here: a stand-in for its factory of sessions."""
    import boto3

    made = []

    class BaseSessionFactory:
        def __init__(self, conn):
            made.append(conn.conn_id)

        def create_session(self):
            return boto3.session.Session("assumed", "role", region_name=REGION)

    module = ModuleType("base_aws")
    module.BaseSessionFactory = BaseSessionFactory
    name = "airflow.providers.amazon.aws.hooks.base_aws"
    for parent in (name.rsplit(".", count)[0] for count in (1, 2, 3)):
        monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(airflow_compat, "HAS_AMAZON_PROVIDER", True)
    assert HiveMetastoreHook("lake").get_conn().table("t") is not None
    assert made == ["lake"]


def test_a_missing_boto3_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(AirflowFailException, match=r"'lake': .*'airflow-hive-opt\[glue\]'"):
        HiveMetastoreHook("lake").get_conn()


def test_a_poke_fetches_only_what_is_required(glue):
    with HiveMetastoreHook("lake").get_conn() as metastore:
        result = poll_partitions(metastore, [TABLE])
        assert result.message == "1 of 2 partitions are missing: lake.t/ds=d1/n=1"
        assert metastore.work().metastore_calls == 1
        assert metastore.work().partitions_fetched == 1
        wanted = tuple((day,) for day in (*DAYS[:999], "later"))
        result = poll_partitions(
            metastore, [Required("lake.texts", ("ds",), ("string",), ("ds",), wanted)]
        )
        assert result.message == "1 of 1,000 partitions are missing: lake.texts/ds=later"
        assert metastore.work().metastore_calls == 2
        later = Required("lake.later", ("ds",), ("string",), ("ds",), (("x",),))
        assert poll_partitions(metastore, [later]).message.endswith("missing: lake.later/ds=x")


def list_in(tmp_path):
    path = UPath(tmp_path) / "list.json"
    required.write(RequiredPartitions("digest", (), "token", (TABLE,)), path)
    return str(path)


def event_of(tmp_path, seconds=0.0):
    deadline = (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()
    uri = list_in(tmp_path)
    trigger = RequiredPartitionsTrigger(uri, "digest", (), "token", "lake", 0.1, deadline)
    assert not [secret for secret in SECRETS if secret in str(trigger.serialize())]

    async def first():
        async for event in trigger.run():
            return event.payload

    return asyncio.run(first())


def test_the_trigger_waits_for_partitions_on_glue(glue, tmp_path):
    event = event_of(tmp_path)
    assert event["message"] == "1 of 2 partitions are missing: lake.t/ds=d1/n=1"
    polls = []

    def land(number, action):
        polls.append(action)
        if len(polls) == 2:
            glue.add_partitions("lake.t", [("d1", "1")])

    glue.fault = land
    event = event_of(tmp_path, seconds=30)
    assert (event["found"], event["summary"]) == (True, {"required": 2})


@pytest.mark.parametrize(("fault", "said"), [("expired", "renew"), ("denied", "glue:GetTable")])
def test_the_trigger_event_has_the_error_without_secrets(glue, tmp_path, fault, said):
    glue.fault = lambda number, action: fault
    event = event_of(tmp_path)
    assert event["error"].startswith("connection 'lake': AWS Glue in eu-central-1")
    assert said in event["error"]
    assert not [secret for secret in SECRETS if secret in str(SimpleNamespace(**event))]
