"""Key sets that the worker shares: the keys are read once, and never taken if they may differ."""

from __future__ import annotations

from itertools import count

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.spark.application import handed_over
from airflow_hive_opt.worker import engine
from tests.spark.shared_keys import aged
from tests.worker.tasks import hand_over, in_worker, values_of, worker_job

OF_KEYS = "SELECT f.id, f.p FROM worker_it.fact f JOIN worker_it.keys k ON f.p = k.p AND k.id < 3"
FIVE = [
    OF_KEYS,
    OF_KEYS.replace("f.id, f.p", "f.p"),
    OF_KEYS.replace("f.id, f.p", "max(f.id)"),
    OF_KEYS + " WHERE f.p <> 1",
    OF_KEYS + " WHERE f.id > 5",
]
_MADE = count(20)


@pytest.fixture(scope="module", autouse=True)
def tables(session):
    for sql in (
        "CREATE TABLE worker_it.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.fact SELECT CAST(id AS INT), CAST(id % 12 AS INT) FROM range(24)",
        "CREATE TABLE worker_it.dim (p INT) PARTITIONED BY (day STRING) STORED AS ORC",
        "INSERT INTO worker_it.dim PARTITION (day = '1') VALUES (1), (2)",
        "ANALYZE TABLE worker_it.dim COMPUTE STATISTICS",
    ):
        session.sql(sql)


@pytest.fixture
def keys(session):
    """A small table of twelve keys, made anew for each test."""
    session.sql("DROP TABLE IF EXISTS worker_it.keys")
    session.sql("CREATE TABLE worker_it.keys (id INT, p INT) STORED AS PARQUET")
    session.sql("INSERT INTO worker_it.keys SELECT CAST(id AS INT), CAST(id AS INT) FROM range(12)")
    aged(session, "worker_it.keys")


@pytest.fixture
def asked(monkeypatch):
    """The sources whose keys the worker has read."""
    found, collect = [], engine.collect

    def counted(source, *arguments):
        found.append(source.name)
        return collect(source, *arguments)

    monkeypatch.setattr(engine, "collect", counted)
    return found


def prune(tasks, sql, **options):
    """The worker's descriptor, with the tasks' key set."""
    conf = options.pop("conf", {})
    job = worker_job(tasks, sql, **{"key_sets": str(tasks.folder / "keys"), **options})
    in_worker(job, **conf)
    return load(UPath(job.path))


def codes(descriptor):
    return [use.code for use in descriptor.key_sets]


def test_five_statements_read_their_keys_once_and_have_the_same_lists(tasks, keys, asked):
    found = [prune(tasks, sql) for sql in FIVE]
    assert asked == ["keys"]
    assert [codes(each) for each in found] == [["ABSENT"], *[["TAKEN"]] * 4]
    alone = [prune(tasks, sql, key_sets="") for sql in FIVE]
    assert len(asked) == 6
    for shared, own in zip(found, alone, strict=True):
        assert values_of(shared) == values_of(own)
        assert (shared.binding, shared.small_tables) == (own.binding, own.small_tables)


def test_a_map_join_with_taken_keys_has_the_rows_of_plain_spark(tasks, keys, asked):
    folder = {"key_sets": str(tasks.folder / "keys")}
    for sql in FIVE:
        hand_over(tasks, sql, **folder)
    found = hand_over(
        tasks, OF_KEYS, between=["INSERT INTO worker_it.fact VALUES (99, 2)"], **folder
    )
    assert (found.reader, asked) == ("worker", ["keys"])


def inserted(tasks):
    tasks.write(f"INSERT INTO worker_it.keys VALUES (2, {next(_MADE) % 12})")
    aged(tasks.session, "worker_it.keys")


def of_another_type(tasks):
    tasks.write(
        "DROP TABLE worker_it.keys",
        "CREATE TABLE worker_it.keys (id INT, p BIGINT) STORED AS PARQUET",
        "INSERT INTO worker_it.keys SELECT CAST(id AS INT), id FROM range(12)",
    )
    aged(tasks.session, "worker_it.keys")


def elsewhere(tasks):
    other = tasks.folder / "other"
    tasks.write(
        "DROP TABLE worker_it.keys",
        f"CREATE TABLE worker_it.keys (id INT, p INT) STORED AS PARQUET LOCATION '{other}'",
        "INSERT INTO worker_it.keys SELECT CAST(id AS INT), CAST(id AS INT) FROM range(12)",
    )
    aged(tasks.session, "worker_it.keys")


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (inserted, "TABLES_CHANGED", "the files of worker_it.keys changed"),
        (of_another_type, "OTHER_COLUMNS", "changed from id int, p int to id int, p bigint"),
        (elsewhere, "OTHER_TABLES", "worker_it.keys lies in "),
    ],
)
def test_a_key_set_of_other_tables_is_refused_and_replaced(tasks, keys, asked, change, code, named):
    prune(tasks, OF_KEYS)
    change(tasks)
    refused = prune(tasks, OF_KEYS)
    (use,) = refused.key_sets
    assert (use.code, asked) == (code, ["keys"] * 2)
    assert named in use.why
    assert values_of(refused) == values_of(prune(tasks, OF_KEYS, key_sets=""))
    assert codes(prune(tasks, OF_KEYS)) == ["TAKEN"]


def test_other_settings_and_limits_refuse_a_key_set(tasks, keys, asked):
    prune(tasks, OF_KEYS)
    conf = {"spark.sql.parquet.binaryAsString": "false"}
    (use,) = prune(tasks, OF_KEYS, conf=conf).key_sets
    assert (use.code, "binaryAsString was not set" in use.why) == ("OTHER_SESSION", True)
    (use,) = prune(tasks, OF_KEYS, conf=conf, max_keys=2).key_sets
    assert (use.code, "max_keys" in use.why) == ("OTHER_SESSION", True)
    hadoop = {**conf, "spark.hadoop.fs.file.impl.disable.cache": "true"}
    (use,) = prune(tasks, OF_KEYS, conf=hadoop).key_sets
    assert (use.code, "spark.hadoop.* was" in use.why) == ("OTHER_SESSION", True)
    prune(tasks, OF_KEYS, conf=conf)
    # of no setting that the worker does not look at
    assert codes(prune(tasks, OF_KEYS, conf={**conf, "spark.sql.ansi.enabled": "false"})) == [
        "TAKEN"
    ]


def test_partitions_that_are_new_refuse_a_key_set(tasks, asked):
    aged(tasks.session, "worker_it.dim")
    sql = "SELECT f.id FROM worker_it.fact f JOIN worker_it.dim d ON f.p = d.p WHERE d.day >= '1'"
    assert [codes(prune(tasks, sql)) for _ in range(2)] == [["ABSENT"], ["TAKEN"]]
    tasks.write(
        "INSERT INTO worker_it.dim PARTITION (day = '2') VALUES (3)",
        "ANALYZE TABLE worker_it.dim COMPUTE STATISTICS",
    )
    aged(tasks.session, "worker_it.dim")
    changed = prune(tasks, sql)
    (use,) = changed.key_sets
    assert (use.code, "the partitions of worker_it.dim" in use.why) == ("TABLES_CHANGED", True)
    assert values_of(changed) == [("1",), ("2",), ("3",)]
    assert asked == ["dim", "dim"]


def test_a_file_that_has_just_changed_is_not_shared(tasks, keys, asked):
    tasks.write("INSERT INTO worker_it.keys VALUES (1, 7)")
    aged(tasks.session, "worker_it.keys", seconds=-1000)
    (use,) = prune(tasks, OF_KEYS).key_sets
    assert (use.code, "has just changed" in use.why) == ("NOT_SHARED", True)
    assert asked == ["keys"]


def test_damaged_keys_are_read_again(tasks, keys, asked):
    prune(tasks, OF_KEYS)
    (path,) = (tasks.folder / "keys").iterdir()
    for data in (path.read_bytes()[:-9], path.read_bytes().replace(b'"2"', b'"5"', 1), b""):
        path.write_bytes(data)
        assert codes(prune(tasks, OF_KEYS)) == ["NOT_VALID"]
        assert codes(prune(tasks, OF_KEYS)) == ["TAKEN"]
    assert len(asked) == 4


def test_spark_and_the_worker_have_key_sets_of_their_own(tasks, keys, asked):
    for local_task in ("worker", "spark", "worker", "spark"):
        found = tasks.both(OF_KEYS, local_task=local_task, key_sets="days")
        assert found["local_task"] == local_task
        (use,) = found["key_sets"]
    assert (use["code"], asked) == ("TAKEN", ["keys"])
    assert len(list((tasks.folder / "key_sets" / "d" / "days").iterdir())) == 2


def test_a_table_that_changes_after_its_keys_were_taken_is_noticed(
    tasks, keys, asked, monkeypatch, caplog
):
    """As if the worker had read the table itself: Spark reads the keys again."""
    tasks.both(OF_KEYS, local_task="worker", key_sets="days")
    before = handed_over.check_binding

    def changing(*arguments):
        inserted(tasks)
        return before(*arguments)

    monkeypatch.setattr(handed_over, "check_binding", changing)
    found = tasks.run(MapJoinPruneOperator, OF_KEYS, local_task="worker", key_sets="days")
    assert "worker_it.keys changed while Spark started" in caplog.text
    assert (found["local_task"], asked) == ("spark", ["keys"])
