"""A sensor between the two tasks of the split form takes the local task's keys, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
)
from upath import UPath

from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.documents.required_keys import FoundKeys, ScanKeys, keep_keys
from airflow_hive_opt.metastores import required
from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.provider.waiting import statement_digest
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from tests.operators.test_split_form import Instance
from tests.sensors.test_sensors import event_of
from tests.services.thrift import add_partitions, create_database, create_table, thrift_client

SQL = (
    "INSERT OVERWRITE TABLE landing.result SELECT f.id, f.p FROM landing.fact f "
    "JOIN landing.keys k ON f.p = k.p AND k.p < {{ params.below }}"
)
COLUMNS = [("id", "int")]
PARTITIONED_BY = [("p", "int"), ("r", "string")]


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE landing")
    spark.range(500).selectExpr("CAST(id AS INT) p").coalesce(1).write.saveAsTable("landing.keys")
    spark.sql(
        "CREATE TABLE landing.fact (id INT) PARTITIONED BY (p INT, r STRING) STORED AS PARQUET"
    )
    spark.sql("INSERT INTO landing.fact SELECT id, id, 'n' FROM VALUES (0), (600) AS t(id)")
    spark.sql("CREATE TABLE landing.result (id INT, p INT) STORED AS PARQUET")
    yield
    spark.sql("DROP DATABASE landing CASCADE")


@pytest.fixture(scope="module")
def service(metastore_service, tmp_path_factory):
    """The metastore that the sensor asks; it has the same tables as Spark's."""
    folder = tmp_path_factory.mktemp("landing")
    with thrift_client(metastore_service) as client:
        create_database(client, "landing", str(folder))
        create_table(client, "landing.fact", COLUMNS, PARTITIONED_BY, str(folder / "fact"))
        add_partitions(client, "landing.fact", COLUMNS, [(("0", "n"), "/nowhere/0", {})])
    return metastore_service


@pytest.fixture
def started(monkeypatch):
    """The Sparks that sensors have started."""
    found = []
    run = RequiredPartitionsSensor.run

    def counted(self, *arguments):
        found.append(self.task_id)
        return run(self, *arguments)

    monkeypatch.setattr(RequiredPartitionsSensor, "run", counted)
    return found


@pytest.fixture(autouse=True)
def connection(request, monkeypatch):
    if "service" in request.fixturenames:
        service = request.getfixturevalue("service")
        document = {"conn_type": "hive_metastore", "host": service.host, "port": service.port}
        monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", json.dumps(document))


def context(task_id, below=3):
    instance = Instance(
        dag_id="d", run_id="r", task_id=task_id, map_index=-1, try_number=1, pushed={}, id=task_id
    )
    return {"ti": instance, "params": {"below": below}}


def made(operator, tmp_path, below=3, sql=SQL, **options):
    """The rendered task and its context."""
    task_id = operator.__name__
    task = operator(task_id=task_id, sql=sql, descriptor_path=str(tmp_path), **options)
    found = context(task_id, below)
    task.render_template_fields(found)
    return task, found


def done(operator, tmp_path, **options):
    """The task's output, as XCom brings it to other tasks."""
    task, found = made(operator, tmp_path, **options)
    return json.loads(json.dumps(task.execute(found)))


def poked(tmp_path, descriptor, **options):
    options = {"deferrable": False, **options}
    task, found = made(RequiredPartitionsSensor, tmp_path, descriptor=descriptor, **options)
    return task.poke(found).xcom_value


@pytest.mark.slow
@pytest.mark.parametrize("below", [3, 450], ids=["by filter", "by names"])
def test_the_map_join_reads_partitions_that_the_sensor_waited_for(
    spark, service, tmp_path, started, below
):
    pruned = done(LocalTaskOperator, tmp_path, below=below)
    assert pruned["kept"] == len(spark.sql("SHOW PARTITIONS landing.fact").collect()) - 1
    values = [n for n in range(below) if f"p={n}/" not in str(_partitions(spark))]
    options = {"below": below, "descriptor": pruned, "timeout": 0, "poke_interval": 0}
    sensor, found = made(RequiredPartitionsSensor, tmp_path, **options, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute(found)
    missing = event_of(deferred.value.trigger)["summary"]
    assert (missing["required"], missing["missing"]) == (below, len(values))

    rows = ", ".join(map(str, values))
    spark.sql(f"INSERT INTO landing.fact SELECT id, id, 's' FROM VALUES {rows} AS t(id)")
    with thrift_client(service) as client:
        parts = [((str(value), "s"), f"/nowhere/{value}", {}) for value in values]
        add_partitions(client, "landing.fact", COLUMNS, parts)
    assert event_of(deferred.value.trigger)["found"]
    assert sensor.execute(found) == {"required": below}
    assert started == []

    joined = done(MapJoinOperator, tmp_path, below=below, descriptor=pruned)
    spark.sql("REFRESH TABLE landing.result")
    written = sorted(map(tuple, spark.table("landing.result").collect()))
    select = SQL.split("result ")[1].replace("{{ params.below }}", str(below))
    assert written == sorted(map(tuple, spark.sql(select).collect()))
    assert written == [(n, n) for n in range(below)]
    assert joined["appeared"] == len(values)
    assert joined["work"]["map join"]["partitions_fetched"] == below


def _partitions(spark):
    return [f"{row[0]}/" for row in spark.sql("SHOW PARTITIONS landing.fact").collect()]


def test_a_later_poke_reads_the_list_that_the_sensor_wrote(service, tmp_path, started):
    pruned = done(LocalTaskOperator, tmp_path)
    assert poked(tmp_path, pruned)["required"] == 3
    Path(pruned["uri"]).with_name("1.keys.json").unlink()
    assert poked(tmp_path, pruned)["required"] == 3
    assert started == []


def test_the_sensor_waits_for_the_chosen_columns_only(service, tmp_path, started):
    sql = "SELECT f.id FROM landing.fact f JOIN (SELECT DISTINCT p, 'n' AS r FROM landing.keys " + (
        "WHERE p < 2) k ON f.p = k.p AND f.r = k.r"
    )
    pruned = done(LocalTaskOperator, tmp_path, sql=sql)
    all_columns = poked(tmp_path, pruned, sql=sql)
    assert all_columns["required"] == 2
    task, found = made(
        RequiredPartitionsSensor, tmp_path, sql=sql, descriptor=pruned, columns=["R"]
    )
    assert task.poke(found).xcom_value == {"required": 1}
    assert started == []
    task, found = made(
        RequiredPartitionsSensor, tmp_path, sql=sql, descriptor=pruned, columns=["id"]
    )
    with pytest.raises(AirflowFailException, match="id are not columns to wait for"):
        task.poke(found)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path: path.unlink(), "can't read"),
        (lambda path: path.write_text(path.read_text()[:-9]), "truncated"),
        (lambda path: _keep(path, "another statement", "d"), "belongs to another statement"),
        (lambda path: _keep(path, _digest(), "d"), "belongs to another attempt"),
    ],
)
def test_the_sensor_starts_spark_if_the_keys_are_not_of_this_attempt(
    service, tmp_path, started, capsys, change, why
):
    pruned = done(LocalTaskOperator, tmp_path)
    change(Path(pruned["uri"]).with_name("1.keys.json"))
    assert poked(tmp_path, pruned)["required"] == 3
    assert started == ["RequiredPartitionsSensor"]
    assert why in capsys.readouterr().out


def _digest():
    return statement_digest(SQL.replace("{{ params.below }}", "3"), None)


def _keep(path, query_digest, digest):
    keep_keys(FoundKeys((), ()), query_digest, digest, UPath(path).with_name("1.json"))


REWRITTEN = (
    "SELECT f.p FROM landing.fact f JOIN landing.keys k ON f.p = k.p AND k.p < 3 UNION ALL "
    "SELECT a.p FROM landing.keys a WHERE a.p < "
    "(SELECT avg(b.p) FROM landing.keys b WHERE b.p = a.p)"
)


@pytest.mark.parametrize(
    ("sql", "arguments", "of_local_task"),
    [
        (SQL, {}, {"max_keys": 2}),
        (REWRITTEN, {"hive_conf": {"hive.optimize.correlation": "true"}}, {}),
    ],
    ids=["a small table with too many keys", "a rewritten statement"],
)
def test_the_sensor_starts_spark_if_the_local_task_left_no_keys(
    service, tmp_path, started, sql, arguments, of_local_task
):
    pruned = done(LocalTaskOperator, tmp_path, sql=sql, **arguments, **of_local_task)
    assert not Path(pruned["uri"]).with_name("1.keys.json").exists()
    assert poked(tmp_path, pruned, sql=sql, **arguments)["required"] == 3
    assert started == ["RequiredPartitionsSensor"]


@pytest.mark.parametrize(
    ("output", "raised", "message"),
    [
        (lambda pruned: "uri", AirflowFailException, "must be the output of a LocalTaskOperator"),
        (lambda pruned: {**pruned, "query_digest": "x"}, AirflowFailException, "not those of the"),
        (
            lambda pruned: {**pruned, "prune_only": True},
            AirflowSkipException,
            "nothing is waited for",
        ),
    ],
)
def test_a_descriptor_argument_that_is_no_output_of_a_local_task_is_refused(
    tmp_path, started, output, raised, message
):
    pruned = {"uri": "/nowhere/1.json", "digest": "d", "query_digest": _digest()}
    with pytest.raises(raised, match=message):
        poked(tmp_path, output(pruned))
    assert started == []


def test_the_output_of_a_skipped_local_task_is_refused(tmp_path, started):
    """Airflow renders the output of a task that was skipped to None."""
    task, found = made(RequiredPartitionsSensor, tmp_path, descriptor={})
    task.descriptor = None
    with pytest.raises(AirflowFailException, match="If the local task was skipped"):
        task.poke(found)
    assert started == []


def test_too_many_combinations_of_keys_fail_the_sensor(tmp_path, started, monkeypatch):
    monkeypatch.setattr(required, "MAX_REQUIRED", 3)
    two = (KeyTuples.of(["p"], [(1,), (2,)]), KeyTuples.of(["r"], [("n",), ("s",)]))
    scan = ScanKeys("landing.fact", ("p", "r"), ("int", "string"), "", two)
    path = UPath(tmp_path) / "1.json"
    keep_keys(FoundKeys((scan,), ()), _digest(), "d", path)
    pruned = {"uri": str(path), "digest": "d", "query_digest": _digest()}
    with pytest.raises(AirflowFailException, match="4 combinations"):
        poked(tmp_path, pruned)
    assert started == []


def test_a_sensor_after_a_local_task_does_not_load_pyspark(tmp_path):
    path = UPath(tmp_path) / "1.json"
    note = "s requires no partitions: why"
    keep_keys(FoundKeys((), (note,)), statement_digest("SELECT 1", None), "d", path)
    script = f"""
import sys
from types import SimpleNamespace
from airflow_hive_opt.provider.waiting import statement_digest
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
output = {{"uri": {str(path)!r}, "digest": "d", "query_digest": statement_digest("SELECT 1", None)}}
sensor = RequiredPartitionsSensor(
    task_id="w", sql="SELECT 1", descriptor=output, descriptor_path={str(tmp_path)!r}
)
ti = SimpleNamespace(dag_id="d", run_id="r", task_id="w", map_index=-1, try_number=1)
assert sensor.poke({{"ti": ti}}).is_done
print([name for name in sys.modules if name.startswith(("pyspark.sql", "py4j"))])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    assert note in run.stdout + run.stderr
