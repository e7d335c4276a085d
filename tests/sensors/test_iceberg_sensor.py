"""Waiting for an Iceberg table's partitions, on a catalog in a database.

The keys are those of a list that this attempt has written before: an own test collects them.
"""

from __future__ import annotations

import json
import socket
from threading import Thread

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    TaskDeferred,
)
from upath import UPath

from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.hooks.iceberg_catalog import IcebergCatalogHook
from airflow_hive_opt.metastores.iceberg import catalog as iceberg_catalog
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.provider.waiting import statement_digest
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from tests.sensors.polling import event_when_landed
from tests.sensors.test_sensors import SQL, context, event_of

pytest.importorskip("pyiceberg")  # environments of other versions do not have it

import pyarrow as pa
from pyiceberg.catalog import load_catalog

TABLE = Required(
    "lake.dw.t", ("name", "id"), ("string", "bigint"), ("id",), ((1,), (2,)), "iceberg"
)
OTHER = Required("other.dw.t", ("id",), ("bigint",), ("id",), ((1,),), "iceberg")
IN_A_METASTORE = Required("dw.u", ("ds",), ("string",), ("ds",), (("a",),))
PASSWORD = "hid/den"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The catalog's database; the connection ``lake`` leads to it."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    extra = {"type": "sql", "warehouse": f"file://{tmp_path}/lake", "echo": False}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", connection(host=uri, extra=extra))
    return {**extra, "uri": uri, "echo": "false"}


def connection(**fields):
    return json.dumps({"conn_type": "iceberg", **fields})


def land(place, *values):
    catalog = load_catalog("lake", **place)
    catalog.create_namespace_if_not_exists("dw")
    rows = pa.table({"id": pa.array(values, pa.int64())})
    table = catalog.create_table_if_not_exists("dw.t", rows.schema)
    if not table.spec().fields:
        with table.update_spec() as update:
            update.add_identity("id")
    table.append(rows)


def sensor(tmp_path, *tables, **options):
    """A sensor whose keys are collected, and its context."""
    found = context(id="this-try")
    options = {"poke_interval": 0, "timeout": 0, "deferrable": True, **options}
    made = RequiredPartitionsSensor(
        task_id="wait", sql=SQL, descriptor_path=str(tmp_path), **options
    )
    made.render_template_fields(found)
    path = UPath(str(made.attempt_path(found)))
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = statement_digest(made.sql, made.parameters)
    required.write(RequiredPartitions(digest, (), "this-try", tables), path)
    return made, found


def test_the_sensor_defers_until_the_missing_iceberg_partitions_have_come(place, tmp_path):
    made, found = sensor(tmp_path, TABLE, TABLE, catalog_conn_id="lake")
    with pytest.raises(TaskDeferred) as deferred:
        made.execute(found)
    waiting = deferred.value.trigger
    assert waiting.serialize()[1]["catalog_conn_id"] == "lake"
    assert waiting.serialize()[1]["metastore_conn_id"] is None
    event = event_of(waiting)
    assert event["message"] == (
        "4 of 4 partitions are missing: lake.dw.t/id=1, lake.dw.t/id=2, lake.dw.t/id=1, "
        "lake.dw.t/id=2; the catalog has no Iceberg table dw.t"
    )
    with pytest.raises(AirflowSensorTimeout, match="no Iceberg table"):
        made.execute_complete(found, event)

    land(place, 1, 3)
    assert event_of(waiting)["summary"]["first_missing"] == ["lake.dw.t/id=2"] * 2
    event, polls = event_when_landed(waiting, lambda: land(place, 2))
    assert [each.found for each in polls] == [False, True]
    assert made.execute_complete(found, event) == {"required": 4}
    assert made.execute(found) == {"required": 4}


def test_a_sensor_that_is_not_deferrable_pokes_in_the_worker(place, tmp_path):
    land(place, 1)
    made, found = sensor(tmp_path, TABLE, catalog_conn_id="{{ params.lake }}", deferrable=False)
    made.catalog_conn_id = "lake"
    assert made.poke(found).xcom_value["first_missing"] == ["lake.dw.t/id=2"]
    land(place, 2)
    assert made.poke(found).is_done


def test_catalog_conn_id_may_be_a_template(tmp_path):
    made = RequiredPartitionsSensor(task_id="w", sql=SQL, catalog_conn_id="{{ params.below }}")
    made.render_template_fields(context(below=7))
    assert made.catalog_conn_id == "7"


def test_the_metastore_is_not_called_if_all_tables_are_in_the_catalog(place, tmp_path):
    """Its connection does not even exist."""
    land(place, 1, 2)
    both = {"catalog_conn_id": "lake", "metastore_conn_id": "nowhere"}
    made, found = sensor(tmp_path, TABLE, **both)
    assert made.execute(found) == {"required": 2}
    made, found = sensor(tmp_path, TABLE, IN_A_METASTORE, **both)
    with pytest.raises(AirflowFailException, match="there is no connection 'nowhere'"):
        made.execute(found)


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        ([TABLE], {}, "Iceberg table lake.dw.t: set catalog_conn_id"),
        ([TABLE, OTHER], {"catalog_conn_id": "lake"}, "in the catalogs lake, other, but"),
        (
            [IN_A_METASTORE],
            {"catalog_conn_id": "lake"},
            "of dw.u: set metastore_conn_id",
        ),
        ([TABLE], {"catalog_conn_id": "nowhere"}, "no connection 'nowhere': .* type Iceberg"),
    ],
)
def test_a_missing_connection_is_named_in_one_line(place, tmp_path, tables, options, message):
    made, found = sensor(tmp_path, *tables, **options)
    with pytest.raises(AirflowFailException, match=message) as failed:
        made.execute(found)
    assert len(str(failed.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"conn_type": "aws"}, "its type is 'aws', not 'iceberg'"),
        ({}, "it names no host, which is the catalog's URI"),
        ({"host": "http://h", "login": "me"}, "only one of login and password"),
        ({"host": PASSWORD, "extra": {"type": "sql"}, "login": "me"}, "no database URI"),
    ],
)
def test_the_test_of_an_invalid_connection_names_the_fault_without_secrets(
    monkeypatch, fields, message
):
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", connection(**fields))
    good, said = IcebergCatalogHook("lake").test_connection()
    assert not good
    assert said.startswith("connection 'lake': ")
    assert message in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    ("fields", "properties"),
    [
        (
            {"host": "https://h/ws/", "login": "me", "password": PASSWORD},
            {"type": "rest", "uri": "https://h/ws", "credential": f"me:{PASSWORD}"},
        ),
        (
            {
                "host": "postgresql+psycopg://db:5432/iceberg",
                "login": "me",
                "password": PASSWORD,
                "extra": {"type": "sql", "pool_pre_ping": True, "n": 3},
            },
            {
                "type": "sql",
                "uri": "postgresql+psycopg://me:hid%2Fden@db:5432/iceberg",
                "pool_pre_ping": "true",
                "n": "3",
            },
        ),
        ({"extra": {"type": "glue", "auth": {}}}, {"type": "glue", "auth": {}}),
    ],
)
def test_the_fields_of_a_connection_become_catalog_properties(monkeypatch, fields, properties):
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", connection(**fields))
    assert IcebergCatalogHook("lake").get_conn()._properties == properties


def test_the_test_button_checks_a_catalog_connection(place, monkeypatch):
    assert IcebergCatalogHook("lake").test_connection() == (True, "the catalog answers")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_test_button_says_that_no_catalog_answers(monkeypatch, scheme):
    """Nobody listens, or what listens speaks no TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if scheme == "http":
            listener.close()
        else:
            Thread(target=lambda: listener.accept()[0].sendall(b"no TLS\n"), daemon=True).start()
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", connection(host=f"{scheme}://127.0.0.1:{port}"))
        good, said = IcebergCatalogHook("lake").test_connection()
    assert not good
    assert "127.0.0.1" in said
    assert "\n" not in said


def test_secrets_of_the_connection_are_not_in_errors_events_or_files(tmp_path, monkeypatch, capsys):
    fields = {
        "host": "postgresql+psycopg://127.0.0.1:1/iceberg",
        "login": "me",
        "password": PASSWORD,
        "extra": {"type": "sql", "s3.secret-access-key": "hidden-too"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", connection(**fields))
    made, found = sensor(tmp_path, TABLE, catalog_conn_id="lake")
    with pytest.raises(AirflowException, match="connection 'lake': ") as failed:
        made.execute(found)
    waiting = waiting_for(made, found)
    event = event_of(waiting)
    assert event["error"].startswith("connection 'lake': ")
    with pytest.raises(AirflowException):
        made.execute_complete(found, event)
    stored = "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    told = f"{failed.value}{event}{waiting.serialize()}{stored}{capsys.readouterr()}"
    assert not [each for each in (PASSWORD, "hid%2Fden", "hidden-too") if each in told]


def waiting_for(made, found):
    from airflow_hive_opt.triggers.partitions import RequiredPartitionsTrigger

    digest = statement_digest(made.sql, made.parameters)
    path, deadline = str(made.attempt_path(found)), "2026-01-01T00:00:00+00:00"
    return RequiredPartitionsTrigger(path, digest, (), "this-try", None, 0, deadline, "lake")


def test_a_missing_pyiceberg_is_an_error_that_says_how_to_install_it(place, tmp_path, monkeypatch):
    monkeypatch.setattr(iceberg_catalog, "find_spec", lambda name: None)
    made, found = sensor(tmp_path, TABLE, catalog_conn_id="lake")
    install = r"connection 'lake': .*pip install 'airflow-hive-opt\[iceberg\]'"
    with pytest.raises(AirflowFailException, match=install):
        made.execute(found)
    assert "pip install" in event_of(waiting_for(made, found))["error"]
