"""A REST catalog that hangs, fails, or rejects a token: an error in one line, without secrets."""

from __future__ import annotations

import json

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField

from airflow_hive_opt.documents.job import Status
from airflow_hive_opt.hooks.iceberg_catalog import IcebergCatalogHook
from airflow_hive_opt.metastores.iceberg.catalog import CatalogError
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.spark.application.run import run_job
from tests.lakes.iceberg.conftest import CATALOG, rest_properties
from tests.spark.stages import job_of

REQUIRED = Required("rest.failing.t", ("n",), ("n",), ("int",), ((1,),), "iceberg")
TABLE = "/tables/t"


@pytest.fixture(scope="module")
def table(rest_service):
    """An empty table ``failing.t``, and how to reach it."""
    properties = {"uri": rest_service.uri, "credential": rest_service.credential}
    catalog = load_catalog("rest", type="rest", **properties)
    catalog.create_namespace("failing")
    by_n = PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="n")
    schema = Schema(NestedField(1, "n", IntegerType()))
    catalog.create_table("failing.t", schema, partition_spec=PartitionSpec(by_n))
    yield rest_service
    catalog.drop_table("failing.t")
    catalog.drop_namespace("failing")


@pytest.fixture
def connected(table, monkeypatch):
    """Sets the connection ``lake``, with another password if one is given."""

    def set_connection(password=table.client_secret):
        fields = {"host": table.uri, "login": table.client_id, "password": password}
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "iceberg", **fields}))

    set_connection()
    return set_connection


def absent(timeout=300):
    return IcebergCatalogHook("lake", timeout).get_conn().absent(REQUIRED)


@pytest.mark.parametrize("at", ["/config", "/oauth/tokens", TABLE])
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("hang", "the catalog or its storage has not answered in 0.5 s"),
        ("slow", "the catalog or its storage has not answered in 0.5 s"),
        ("drop", "Remote end closed connection without response"),
        ("error", "the database is down"),
        ("unauthorized", "the token is not valid"),
    ],
)
def test_a_failing_catalog_is_an_error_of_one_line_without_secrets(
    table, connected, fault, message, at
):
    if at == "/oauth/tokens" and fault in ("slow", "unauthorized"):
        pytest.skip("the token's answer is short, and asks for no token")
    with table.failing(fault, at), pytest.raises(CatalogError) as raised:
        absent(timeout=0.5 if fault in ("hang", "slow") else 60)
    assert message in str(raised.value)
    said_nothing_secret(table, str(raised.value))
    assert absent().tuples == ((1,),)  # once it answers again


def said_nothing_secret(service, text):
    assert "\n" not in text
    assert not [secret for secret in (service.client_secret, *service.tokens) if secret in text]


def test_a_token_that_is_rejected_once_is_asked_for_again(table, connected):
    tables = IcebergCatalogHook("lake").get_conn()
    tables.check()
    issued = set(table.tokens)
    table.tokens.clear()
    try:
        assert tables.absent(REQUIRED).tuples == ((1,),)
        assert issued and table.tokens
    finally:
        table.tokens.update(issued)  # those of Spark's sessions, which do not ask again


def test_a_wrong_credential_is_an_error_without_the_credential(table, connected):
    connected("wrong-password")
    with pytest.raises(CatalogError, match="invalid_client") as raised:
        absent()
    assert "wrong-password" not in str(raised.value)
    assert IcebergCatalogHook("lake").test_connection()[0] is False


SQL = "SELECT t.n FROM shaky.failing.t t JOIN (SELECT 1 AS n) k ON t.n = k.n"


@pytest.fixture
def shaky(lake, table):
    """A session with a catalog ``shaky`` of the service, that waits a second for answers."""
    session = lake.newSession()
    limits = {"rest.client.socket-timeout-ms": "1000", "rest.client.max-retries": "1"}
    properties = {**rest_properties(table), **limits}
    session.conf.set("spark.sql.catalog.shaky", CATALOG)
    for name, value in properties.items():
        session.conf.set(f"spark.sql.catalog.shaky.{name}", value)
    return session


@pytest.mark.parametrize(
    ("fault", "at", "message"),
    [
        ("hang", "/config", "Read timed out"),
        ("hang", TABLE, "Read timed out"),
        ("drop", TABLE, "failed to respond"),
        ("error", TABLE, "the database is down"),
        ("unauthorized", "/config", "the token is not valid"),
        ("unauthorized", TABLE, "the token is not valid"),
    ],
)
def test_a_failing_catalog_fails_sparks_run_with_one_line(
    shaky, table, tmp_path, fault, at, message
):
    path = str(tmp_path / "descriptor.json")
    with table.failing(fault, at):
        outcome = run_job(shaky, job_of(SQL, path=path))
    assert outcome.status is Status.FAILED
    assert message in outcome.message
    said_nothing_secret(table, outcome.message)
    outcome = run_job(shaky, job_of(SQL, path=path))
    assert outcome.status is Status.DONE
