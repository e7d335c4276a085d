"""Hive's transactional tables: recognized and left whole, by the session, worker and sensor."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from pyspark.errors import AnalysisException

from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.map_join.command import Command
from tests.conftest import METASTORE_VERSION
from tests.services.acid_tables import (
    ACID,
    COLUMNS,
    INSERT_ONLY,
    add_partition,
    create,
    mark,
    write_deletes,
    write_delta,
    write_inserted,
)
from tests.services.thrift import create_database, thrift_client
from tests.worker.tasks import descriptor_of

KINDS = {"acid": ACID, "insert_only": INSERT_ONLY}
DAYS = [f"2026-01-{day:02}" for day in range(1, 7)]
BIG = "SELECT f.id FROM transactional.{} f JOIN worker_it.keys k ON f.day = k.day AND k.id < 2"
SMALL = "SELECT f.id FROM worker_it.fact f JOIN transactional.{} k ON f.day = k.day"


@pytest.fixture(scope="module")
def tables(session, metastore_service, postgres_server):
    """Transactional tables of both kinds, partitioned and not, and plain ones to join them with.

    They stay: a metastore can't drop them without the tables of Hive's transactions.
    """
    session.sql("CREATE TABLE worker_it.fact (id INT) PARTITIONED BY (day STRING) STORED AS ORC")
    values = ", ".join(f"({at}, '{day}')" for at, day in enumerate(DAYS))
    session.sql(f"INSERT INTO worker_it.fact VALUES {values}")
    session.sql("CREATE TABLE worker_it.keys (id INT, day STRING) STORED AS PARQUET")
    session.sql(f"INSERT INTO worker_it.keys VALUES {values}")
    rows = [{"id": at, "day": day} for at, day in enumerate(DAYS)]
    folder = metastore_service.warehouse / "transactional"
    with thrift_client(metastore_service) as client:
        create_database(client, "transactional", str(folder))
        for kind, parameters in KINDS.items():
            write = write_delta if kind == "acid" else write_inserted
            name, place = f"transactional.{kind}_fact", folder / f"{kind}_fact"
            create(client, name, place, COLUMNS[1:])
            for row in rows:
                add_partition(client, name, place / f"day={row['day']}", row["day"])
                write(place / f"day={row['day']}", 1, [{"id": row["id"]}])
            mark(postgres_server, name, parameters)
            name, place = f"transactional.{kind}_keys", folder / f"{kind}_keys"
            create(client, name, place)
            write(place, 1, rows[:2])
            write(place, 2, rows[2:4])
            mark(postgres_server, name, parameters)
        write_deletes(folder / "acid_keys", 3, 1, [0])
    return session


def refused(kind):
    """Whether Spark's client is too old for the metastore to tell it of such a table."""
    return kind == "insert_only" and METASTORE_VERSION == "hive-3.1"


def outcome(session, sql):
    """The rows, or the first line of Spark's error."""
    try:
        return sorted(map(tuple, session.sql(sql).collect()))
    except AnalysisException as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_client_recognizes_transactional_tables(tables, metastore_service, kind):
    names = [f"transactional.{kind}_{part}" for part in ("fact", "keys")]
    for together in (True, False):
        with ThriftMetastore(metastore_service.uri) as metastore:
            if together:
                metastore.look_up(names)
            found = [metastore.table(name) for name in names]
            assert [each.transactional for each in found] == [True, True]
            assert [metastore.storage(each).format for each in found] == ["", ""]
            assert metastore.work().metastore_calls == (1 if together else 2)
            assert not metastore.table("worker_it.fact").transactional


@pytest.mark.parametrize("kind", KINDS)
def test_spark_catalog_recognizes_transactional_tables(tables, kind):
    for part in ("fact", "keys"):
        name = f"transactional.{kind}_{part}"
        # it takes no folder of a transaction for a part of the table
        found = outcome(tables, f"SELECT * FROM {name}")
        if refused(kind):
            assert "does not appear to support insert-only tables" in found
        else:
            assert found == []
            assert SparkCatalog(tables).table(name).transactional


@pytest.mark.parametrize("local_task", ["worker", "spark"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sql", "reason"), [(BIG, "TRANSACTIONAL_TABLE"), (SMALL, "KEY_SOURCE_TRANSACTIONAL")]
)
def test_transactional_tables_are_read_whole(tasks, tables, sql, reason, kind, local_task):
    sql = sql.format(f"{kind}_fact" if sql is BIG else f"{kind}_keys")
    pruned = tasks.prune(sql, local_task)
    assert pruned["local_task"] == local_task
    found = descriptor_of(pruned)
    expected = "PASSED_THROUGH" if refused(kind) and local_task == "spark" else reason
    assert [each.reason for each in found.decisions] == [expected]
    assert (found.targets, found.row_filters, found.small_tables) == ((), (), ())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sql", [BIG, SMALL])
def test_a_run_with_a_transactional_table_has_plain_sparks_rows(tasks, tables, sql, kind):
    sql = sql.format(f"{kind}_fact" if sql is BIG else f"{kind}_keys")
    plain = outcome(tables, sql)
    made = f"CREATE TABLE worker_it.made STORED AS PARQUET AS {sql}"
    if refused(kind):
        with pytest.raises(AirflowException) as raised:
            tasks.both(made)
        assert str(raised.value).splitlines()[0] == plain
        assert not tables.catalog.tableExists("worker_it.made")
        return
    tasks.both(made)
    try:
        assert outcome(tables, "SELECT * FROM worker_it.made") == plain
    finally:
        tables.sql("DROP TABLE worker_it.made")


def test_an_overwrite_of_a_transactional_partition_is_left_to_spark(tables):
    sql = "INSERT OVERWRITE TABLE {} PARTITION (day = '2026-01-01') SELECT 7"
    names = ["worker_it.fact", "transactional.acid_fact"]
    found = [Command(tables, sql.format(name), {}).overwrites_one_partition() for name in names]
    assert found == [True, False]


def test_a_sensor_requires_no_partitions_of_transactional_tables(tasks, tables, caplog):
    found = tasks.context("wait")
    made = tasks.made(RequiredPartitionsSensor, BIG.format("acid_fact"), deferrable=False)
    made.render_template_fields(found)
    assert made.poke(found).xcom_value["required"] == 0
    assert "f requires no partitions: Hive's transactions" in caplog.text
