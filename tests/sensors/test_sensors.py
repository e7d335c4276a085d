"""The sensors and their triggers, on real Spark and a real metastore."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowSensorTimeout, TaskDeferred
from upath import UPath

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.hooks.hive_metastore import HiveMetastoreHook
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.metastores.thrift import connection as thrift_connection
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.provider.waiting import poll_partitions
from airflow_hive_opt.sensors.partition_descriptor import PartitionDescriptorSensor
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from airflow_hive_opt.triggers.partitions import RequiredPartitionsTrigger
from tests.documents.test_descriptor import descriptor
from tests.sensors.polling import event_when_landed
from tests.services.processes import free_port
from tests.services.thrift import add_partitions, create_database, create_table, thrift_client

COLUMNS = [("id", "int")]
SQL = (
    "SELECT f.id FROM sensors.fact f JOIN sensors.keys k ON f.p = k.p AND k.p < {{ params.below }}"
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    """The keys, in Spark; the partitions that are waited for are the metastore's."""
    spark.sql("CREATE DATABASE IF NOT EXISTS sensors")
    frame = spark.range(2000).selectExpr("CAST(id AS INT) p")
    frame.coalesce(1).write.saveAsTable("sensors.keys")
    spark.sql("CREATE TABLE sensors.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    yield
    spark.sql("DROP DATABASE sensors CASCADE")


@pytest.fixture(scope="module")
def service(metastore_service, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sensors")
    with thrift_client(metastore_service) as client:
        create_database(client, "sensors", str(folder))
        create_table(client, "sensors.fact", COLUMNS, [("p", "int")], str(folder / "fact"))
    return metastore_service


def land(service, *values):
    with thrift_client(service) as client:
        parts = [((str(value),), f"/nowhere/{value}", {}) for value in values]
        add_partitions(client, "sensors.fact", COLUMNS, parts)


@pytest.fixture(autouse=True)
def connections(request, monkeypatch):
    if "service" in request.fixturenames:
        service = request.getfixturevalue("service")
        document = {"conn_type": "hive_metastore", "host": service.host, "port": service.port}
        monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", json.dumps(document))


def context(below=3, try_number=1, **named):
    instance = SimpleNamespace(
        dag_id="d", run_id="r", task_id="wait", map_index=-1, try_number=try_number, **named
    )
    return {"ti": instance, "params": {"below": below}}


def sensor(tmp_path, found, **options):
    options = {"poke_interval": 0, "timeout": 0, "deferrable": True, **options}
    made = RequiredPartitionsSensor(
        task_id="wait", sql=SQL, descriptor_path=str(tmp_path), **options
    )
    made.render_template_fields(found)
    return made


def event_of(trigger):
    """The event of a trigger that went through its serialised form, as in the triggerer."""
    name, arguments = trigger.serialize()
    assert name == f"{type(trigger).__module__}.{type(trigger).__qualname__}"
    again = type(trigger)(**json.loads(json.dumps(arguments)))

    async def first():
        async for event in again.run():
            return event.payload

    return asyncio.run(first())


def write_list(folder, *tables, **whose):
    """A list of a statement ``q`` and an attempt ``t``."""
    uri = folder / "list.json"
    whose = {"query_digest": "q", "columns": (), "token": "t", **whose}
    required.write(RequiredPartitions(tables=tables, **whose), UPath(uri))
    return uri


def trigger(uri, connection):
    deadline = "2026-01-01T00:00:00+00:00"
    return RequiredPartitionsTrigger(str(uri), "q", (), "t", connection, 0, deadline)


def test_control_characters_in_partition_names_are_escaped(service):
    odd = Required("sensors.fact", ("p",), ("string",), ("p",), (("a\n\x1b[2J::endgroup::",),))
    with ThriftMetastore(service.uri) as metastore:
        result = poll_partitions(metastore, [odd])
    assert not result.found
    assert "\n" not in result.message
    assert "\x1b" not in result.message
    assert "::endgroup::" not in result.message


def test_the_sensor_defers_until_the_missing_partitions_have_come(spark, service, tmp_path):
    found = context()
    with pytest.raises(TaskDeferred) as deferred:
        sensor(tmp_path, found).execute(found)
    waiting = deferred.value.trigger
    assert deferred.value.method_name == "execute_complete"

    event = event_of(waiting)  # its deadline is over
    assert event["message"] == (
        "3 of 3 partitions are missing: sensors.fact/p=0, sensors.fact/p=1, sensors.fact/p=2"
    )
    with pytest.raises(AirflowSensorTimeout, match="after 0 s: 3 of 3 partitions are missing"):
        sensor(tmp_path, found).execute_complete(found, event)

    land(service, 0, 2)
    same = "01"  # the same value, otherwise written
    event, polls = event_when_landed(waiting, lambda: land(service, same))
    assert [result.message for result in polls] == [
        "1 of 3 partitions are missing: sensors.fact/p=1",
        "all 3 partitions are there",
    ]
    assert sensor(tmp_path, found).execute_complete(found, event) == {"required": 3}
    assert sensor(tmp_path, found).execute(found) == {"required": 3}


def test_a_sensor_that_is_not_deferrable_pokes_in_the_worker(spark, service, tmp_path):
    found = context(below=5000)
    made = sensor(tmp_path, found, deferrable=False)
    with pytest.raises(AirflowSensorTimeout):
        made.execute(found)
    assert "sensors.fact/p=9" in made.poke(found).xcom_value["first_missing"][6]


@pytest.mark.parametrize("wanted", [1, 1000])
def test_a_poke_makes_one_metastore_call(service, wanted):
    tables = [
        Required("sensors.fact", ("p",), ("int",), ("p",), tuple((n,) for n in range(wanted)))
    ]
    with HiveMetastoreHook().get_conn() as metastore:
        for pokes in (1, 2):
            poll_partitions(metastore, tables)
            assert metastore.work().metastore_calls == pokes
            assert metastore.work().partitions_fetched == 0


def test_partitions_of_a_table_that_does_not_exist_are_missing(service):
    tables = [Required("sensors.later", ("p",), ("int",), ("p",), ((1,),))]
    with HiveMetastoreHook().get_conn() as metastore:
        result = poll_partitions(metastore, tables)
    assert result.message == "1 of 1 partitions are missing: sensors.later/p=1"


def test_a_metastore_that_does_not_answer_fails_the_sensor_without_secrets(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(thrift_connection, "time", SimpleNamespace(sleep=lambda seconds: None))
    port = free_port()
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", f"hive-metastore://user:secret@127.0.0.1:{port}")
    message = rf"connection 'down': no answer from the metastore at 127\.0\.0\.1:{port}"
    found = context()
    with pytest.raises(AirflowException, match=message):
        sensor(tmp_path, found, metastore_conn_id="down").execute(found)
    uri = write_list(tmp_path, Required("a.b", ("p",), ("int",), ("p",), ((1,),)))
    event = event_of(trigger(uri, "down"))
    assert event["error"].startswith("connection 'down': no answer")
    assert "secret" not in str(event)
    with pytest.raises(AirflowException, match="no answer"):
        sensor(tmp_path, found).execute_complete(found, event)


@pytest.mark.parametrize(
    ("whose", "message"),
    [
        ({"query_digest": "other"}, "belongs to another statement"),
        ({"columns": ("ds",)}, "belongs to other columns"),
        ({"token": "other"}, "belongs to another attempt"),
    ],
)
def test_a_trigger_refuses_a_list_of_required_partitions_of_another_task(
    service, tmp_path, whose, message
):
    uri = write_list(tmp_path, **whose)
    event = event_of(trigger(uri, "metastore_default"))
    assert message in event["error"]
    with pytest.raises(AirflowException, match=message):
        sensor(tmp_path, context()).execute_complete(context(), event)


def test_a_trigger_refuses_an_altered_list_of_required_partitions(service, tmp_path):
    uri = tmp_path / "list.json"
    uri.write_text("[]")
    assert (
        "is refused: it is not a JSON object"
        in event_of(trigger(uri, "metastore_default"))["error"]
    )


def test_a_poke_ignores_lists_that_this_attempt_did_not_write(spark, service, tmp_path, capsys):
    """One says that all is there: of another table, altered, or of an earlier life of this run."""
    found = context(below=4000, id="this-try")
    made = sensor(tmp_path, found, deferrable=False)
    path = UPath(str(made.attempt_path(found)))
    mine = made.job(found).query_digest

    def wanted(attempt, operator=made):
        return operator.poke(attempt).xcom_value["required"]

    path.parent.mkdir(parents=True)
    path.write_text("[]")
    assert wanted(found) == 2000
    for stale in (
        RequiredPartitions(mine, (), "an-earlier-try", ()),
        RequiredPartitions("another statement", (), "this-try", ()),
        RequiredPartitions(mine, ("p",), "this-try", ()),
    ):
        required.write(stale, path)
        assert wanted(found) == 2000
    own = required.RequiredPartitions(mine, (), "this-try", ())
    required.write(own, path)
    assert wanted(found) == 0  # a later poke of this attempt collects nothing
    assert wanted(found, sensor(tmp_path, found, deferrable=False)) == 0  # as after a reschedule

    unnamed = context(below=4000)
    required.write(own, path)
    assert wanted(unnamed) == 2000
    assert "it belongs to another attempt" in capsys.readouterr().out


def test_the_test_button_checks_a_metastore_connection(service, monkeypatch):
    assert HiveMetastoreHook().test_connection() == (
        True,
        f"the metastore at {service.uri} answers, and has the database default",
    )
    for connection, message in (
        ("hive-metastore://", "names no host"),
        (
            "hive-metastore://h:1?authMechanism=SCRAM",
            "requires SCRAM, but this client",
        ),
        (
            "hive-metastore://h:1?auth_mechanism=SCRAM",
            "requires SCRAM, but this client",
        ),
        (f"hive-metastore://127.0.0.1:{free_port()}", "no answer from the metastore at 127.0.0.1"),
    ):
        monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", connection)
        good, said = HiveMetastoreHook().test_connection()
        assert not good
        assert message in said


def test_the_descriptor_sensor_waits_until_the_descriptor_is_valid(tmp_path):
    path = tmp_path / "found.json"
    mine = descriptor()

    def look(**options):
        made = PartitionDescriptorSensor(
            task_id="wait", uri=str(path), timeout=0, deferrable=True, **options
        )
        try:
            return made.execute(context())
        except TaskDeferred as deferred:
            event = event_of(deferred.trigger)
            with pytest.raises(AirflowSensorTimeout) as error:
                made.execute_complete(context(), event)
            return str(error.value)

    assert "there is no descriptor at" in look()
    whole = descriptors.encode(mine)
    path.write_bytes(whole[:-20])
    assert "is refused: it is truncated or not JSON" in look()
    path.write_bytes(whole)
    assert look()["digest"] == mine.digest
    assert "belongs to another statement" in look(sql="SELECT 1")
    poked = PartitionDescriptorSensor(task_id="wait", uri=str(path), deferrable=False)
    assert poked.execute(context())["kept"] == mine.kept
