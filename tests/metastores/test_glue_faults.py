"""Failures of AWS Glue. All of them are the proxy's; the partitions are moto's."""

from __future__ import annotations

import sys

import pytest

from airflow_hive_opt.metastores.glue import connection as glue_connection
from airflow_hive_opt.metastores.glue.connection import GlueConnection, GlueSettings, together
from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
from airflow_hive_opt.metastores.metastore import MetastoreError
from tests.services.glue_stand_in import ERRORS, REGION, glue_stand_in
from tests.services.processes import HOST, free_port

pytest.importorskip("moto")  # environments of other versions do not have it

VALUES = [(f"d{number:05}", str(number % 7)) for number in range(2_500)]
KEYS = [((1,), frozenset({(3,)}))]
NAMES = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
SECRETS = ("AKIASECRETID", "secret-of-tests", "token-of-tests")


@pytest.fixture(scope="module")
def glue():
    with glue_stand_in() as stand_in:
        stand_in.create_table("faults.t", [("ds", "string"), ("n", "int")], VALUES)
        yield stand_in


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Credentials for boto3's chain; retries wait for a hundredth of their time."""
    for name, value in zip(
        ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"), SECRETS, strict=True
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    from botocore.retries.standard import ExponentialBackoff

    real = ExponentialBackoff.delay_amount
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *args: real(*args) / 100)
    monkeypatch.setattr(glue_connection, "_PAUSE", 0.001)


@pytest.fixture
def metastore(glue):
    glue.forget()
    with GlueMetastore(GlueSettings(REGION, glue.endpoint), "faults", timeout=20) as client:
        client.table("t")
        glue.calls.clear()
        yield client


def ask(metastore):
    """All partitions, and those of a key, in several calls."""
    table = metastore.table("t")
    names = {part.values for part in metastore.partition_names(table)}
    found = {part.values for part in metastore.partitions_by_keys(table, KEYS, 0)}
    return names, found


WHOLE = set(VALUES), {row for row in VALUES if row[1] == "3"}


@pytest.mark.parametrize("fault", ["throttled", "broken", "cut off", "cut off unannounced"])
@pytest.mark.parametrize("every", [3, 5])
def test_calls_are_retried_after_temporary_faults(glue, metastore, fault, every):
    """Throttled or cut off in every third or fifth call: the answers are whole all the same."""
    glue.fault = lambda number, action: fault if number % every == 0 else None
    assert ask(metastore) == WHOLE
    assert metastore.work().metastore_calls == glue.calls.total() + 1  # every attempt counts


@pytest.mark.parametrize("fault", [*ERRORS, "cut off", "cut off unannounced"])
def test_a_permanent_fault_is_an_error_of_one_line_without_secrets(glue, metastore, fault):
    glue.fault = lambda number, action: fault
    for question in (
        lambda: metastore.partition_names(metastore.table("t")),
        lambda: metastore.partitions_by_keys(metastore.table("t"), KEYS, 0),
        lambda: metastore.partition_count(metastore.table("t")),
    ):
        with pytest.raises(MetastoreError) as raised:
            question()
        text = str(raised.value)
        assert "\n" not in text
        assert "AWS Glue in eu-central-1" in text
        assert "GetPartitions of faults.t" in text
        assert ERRORS.get(fault, ("", "", ""))[1] in text
        assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize(
    ("fault", "advice", "attempts"),
    [
        ("expired", "renew them", 1),
        ("denied", "glue:BatchGetPartition", 1),
        ("unsigned", "Check the access key", 1),
        ("throttled", "Rate exceeded", 8),
    ],
)
def test_only_temporary_faults_are_retried(glue, metastore, fault, advice, attempts):
    glue.fault = lambda number, action: fault
    with pytest.raises(MetastoreError, match=advice):
        metastore.partition_count(metastore.table("t"))
    assert glue.calls.total() == attempts


@pytest.mark.parametrize("fault", ["expired", "denied", "cut off"])
def test_a_list_that_fails_after_some_pages_is_an_error(glue, metastore, fault):
    """From the third page on, every call fails."""
    glue.largest_page = 100
    glue.fault = lambda number, action: fault if number > 2 else None
    with pytest.raises(MetastoreError):
        ask(metastore)
    glue.forget()
    assert ask(metastore) == WHOLE  # and the client is good for the next question


def test_no_answer_of_glue_is_an_error():
    settings = GlueSettings(REGION, f"http://{HOST}:{free_port()}")
    with GlueMetastore(settings) as metastore, pytest.raises(MetastoreError, match="Could not con"):
        metastore.table("db.t")


def test_a_missing_region_is_an_error():
    with pytest.raises(MetastoreError, match=r"You must specify a region\..*region_name"):
        GlueConnection()


def test_the_region_of_an_ec2_instance_is_used(monkeypatch):
    from botocore.utils import InstanceMetadataRegionFetcher

    monkeypatch.setattr(InstanceMetadataRegionFetcher, "retrieve_region", lambda self: "eu-west-3")
    assert GlueConnection().where == "AWS Glue in eu-west-3"
    assert GlueConnection(GlueSettings("eu-west-1")).where == "AWS Glue in eu-west-1"


def test_missing_credentials_are_an_error(glue, monkeypatch, tmp_path):
    for name in NAMES:
        monkeypatch.delenv(f"AWS_{name}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    metastore = GlueMetastore(GlueSettings(REGION, glue.endpoint))
    with pytest.raises(MetastoreError, match="Unable to locate credentials"):
        metastore.table("faults.t")


def test_a_missing_boto3_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MetastoreError, match=r"pip install 'airflow-hive-opt\[glue\]'"):
        GlueMetastore(GlueSettings(REGION))


def test_requests_name_the_catalog_of_another_account(glue, monkeypatch):
    asked = []
    real = glue.answer
    monkeypatch.setattr(glue, "answer", lambda *args: asked.append(args[1]) or real(*args))
    settings = GlueSettings(REGION, glue.endpoint, "210987654321")
    metastore = GlueMetastore(settings)
    table = metastore.table("faults.t")
    assert metastore.partition_count(table) == 1_001
    assert [request["CatalogId"] for request in asked] == ["210987654321"] * 2
    assert not [secret for secret in SECRETS if secret in repr(settings)]


def test_the_first_error_ends_all_parallel_calls():
    with pytest.raises(ZeroDivisionError):
        together(lambda number: 1 // number, [1, 0, 1])
