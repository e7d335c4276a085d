"""Waiting for partitions of Iceberg tables that Spark writes, in a Hive Metastore.

Spark collects the keys and says which of them have a partition; PyIceberg must say the same.
"""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import date, datetime, timedelta, timezone

import pytest
from airflow.providers.common.compat.sdk import AirflowSensorTimeout, TaskDeferred
from upath import UPath

from airflow_hive_opt.documents.required_keys import read_keys
from airflow_hive_opt.metastores.iceberg.catalog import IcebergTables
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from airflow_hive_opt.statement.errors import PlanError
from tests.sensors.test_sensors import context, event_of
from tests.spark.stages import job_of, prune, required_partitions

ROWS = (
    "SELECT id - 50 AS id, CAST(id % 11 AS INT) AS n, date_add(DATE'1969-12-20', CAST(id AS INT)) "
    "AS Day, timestamp_micros((id - 50) * 5400000001) AS at, "
    "element_at(array('', 'a', 'äöü', 'é😀x', 'zz\\'z', 'null'), CAST(id % 6 + 1 AS INT)) AS name "
    "FROM range({start}, {end})"
)
HALF = ROWS.format(start=0, end=100)
# By transform: a column, and the value of its partition as an expression of ``{}``.
TRANSFORMS = {
    "day": ("day", "{}"),
    "years(day)": ("day", "hms.system.years({})"),
    "months(day)": ("day", "hms.system.months({})"),
    "days(day)": ("day", "hms.system.days({})"),
    "bucket(7, day)": ("day", "hms.system.bucket(7, {})"),
    "at": ("at", "{}"),
    "years(at)": ("at", "hms.system.years({})"),
    "months(at)": ("at", "hms.system.months({})"),
    "days(at)": ("at", "hms.system.days({})"),
    "hours(at)": ("at", "hms.system.hours({})"),
    "bucket(7, at)": ("at", "hms.system.bucket(7, {})"),
    "id": ("id", "{}"),
    "bucket(50, id)": ("id", "hms.system.bucket(50, {})"),
    "truncate(7, id)": ("id", "hms.system.truncate(7, {})"),
    "n": ("n", "{}"),
    "bucket(50, n)": ("n", "hms.system.bucket(50, {})"),
    "name": ("name", "{}"),
    "bucket(50, name)": ("name", "hms.system.bucket(50, {})"),
    "truncate(2, name)": ("name", "hms.system.truncate(2, {})"),
}


@pytest.fixture(scope="module")
def tables(lake):
    """Keys ``waiting.keys``, of which tables made of the first half have about half."""
    lake.sql("CREATE NAMESPACE hms.waiting")
    lake.sql(f"CREATE TABLE hms.waiting.keys USING iceberg AS {ROWS.format(start=0, end=200)}")
    lake.sql("INSERT INTO hms.waiting.keys VALUES (NULL, NULL, NULL, NULL, NULL)")
    yield lake
    for row in lake.sql("SHOW TABLES IN hms.waiting").collect():
        lake.sql(f"DROP TABLE hms.waiting.{row.tableName} PURGE")
    lake.sql("DROP NAMESPACE hms.waiting")


@pytest.fixture
def catalog(metastore_service):
    return IcebergTables({"type": "hive", "uri": metastore_service.uri})


@pytest.fixture
def make(tables):
    """Makes a table; ``layout`` follows its name."""
    made = []

    def make(layout, rows=HALF, name="fact"):
        tables.sql(f"CREATE TABLE hms.waiting.{name} USING iceberg {layout} AS {rows}")
        made.append(name)

    yield make
    for name in made:
        tables.sql(f"DROP TABLE IF EXISTS hms.waiting.{name} PURGE")


def joined(*columns, condition="TRUE"):
    equal = " AND ".join(f"f.{column} = k.{column}" for column in columns)
    return f"SELECT f.id FROM hms.waiting.fact f JOIN hms.waiting.keys k ON {equal} AND {condition}"


def required_by(session, sql, only=()):
    (found,) = required_partitions(session, job_of(sql), only)
    return found


def days(*numbers):
    return tuple((date(2024, 1, number),) for number in numbers)


@pytest.mark.parametrize(
    ("transform", "zone"),
    [
        *((transform, "UTC") for transform in TRANSFORMS),
        *((transform, "America/St_Johns") for transform in ("at", "days(at)", "hours(at)")),
    ],
)
def test_spark_and_pyiceberg_find_the_same_partitions(tables, make, catalog, transform, zone):
    column, value = TRANSFORMS[transform]
    tables.conf.set("spark.sql.session.timeZone", zone)
    try:
        make(f"PARTITIONED BY ({transform})")
        tables.sql("INSERT INTO hms.waiting.fact VALUES (NULL, NULL, NULL, NULL, NULL)")
        required = required_by(tables, joined(column))
        distinct = tables.sql(f"SELECT count(DISTINCT {column}) FROM hms.waiting.keys").head()[0]
        assert len(required.tuples) == distinct
        present = tables.sql(
            f"SELECT count(DISTINCT {column}) FROM hms.waiting.keys WHERE "
            f"{value.format(column)} IN (SELECT {value.format(column)} FROM hms.waiting.fact)"
        ).head()[0]
        absent = catalog.absent(required).tuples
        assert len(absent) == distinct - present
        assert set(absent) < set(required.tuples)
        if absent and column == "at":
            shown = f"timestamp_micros({absent[0][0]})"
            one = f"SELECT 1 FROM hms.waiting.fact WHERE {value.format('at')} = "
            assert tables.sql(one + value.format(shown)).head() is None
    finally:
        tables.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize("column", ["day", "at", "id", "n", "name"])
def test_a_local_task_leaves_the_keys_that_the_sensor_requires(tables, make, tmp_path, column):
    make(f"PARTITIONED BY ({column})")
    sql = joined(column, condition="k.id < 40 AND k.n > 3")
    path = UPath(tmp_path) / "1.json"
    descriptor = prune(tables, job_of(sql), path).descriptor
    found = read_keys(path, descriptor.query_digest, descriptor.digest)
    assert list(found.required()) == required_partitions(tables, job_of(sql))


def test_the_sensor_waits_for_iceberg_partitions(
    tables, make, metastore_service, monkeypatch, tmp_path
):
    extra = {"type": "hive"}
    connection = {"conn_type": "iceberg", "host": metastore_service.uri, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
    make("PARTITIONED BY (days(day), bucket(4, id))")
    sql = joined("DAY", condition="k.id BETWEEN 48 AND 51")
    found = context(id="this-try")
    made = RequiredPartitionsSensor(
        task_id="wait",
        sql=sql,
        catalog_conn_id="lake",
        descriptor_path=str(tmp_path),
        poke_interval=0.1,
        timeout=60,
        deferrable=True,
    )
    made.render_template_fields(found)
    with pytest.raises(TaskDeferred) as deferred:
        made.execute(found)
    waiting = deferred.value.trigger
    waiting.deadline = datetime.now(timezone.utc).isoformat()
    event = event_of(waiting)
    lacking = "hms.waiting.fact/day=1970-03-30, hms.waiting.fact/day=1970-03-31"
    assert event["message"] == f"2 of 4 partitions are missing: {lacking}"
    with pytest.raises(AirflowSensorTimeout, match="2 of 4 partitions"):
        made.execute_complete(found, event)
    waiting.deadline = (datetime.now(timezone.utc) + timedelta(minutes=1)).isoformat()
    polls = []

    class Landing(type(waiting)):
        async def poll(self):
            polls.append(await super().poll())
            if len(polls) < 3:
                start = 99 + len(polls)
                rows = ROWS.format(start=start, end=start + 1)
                await asyncio.to_thread(tables.sql, f"INSERT INTO hms.waiting.fact {rows}")
            return polls[-1]

    async def first():
        async for event in Landing(**waiting.serialize()[1]).run():
            return event.payload

    event = asyncio.run(first())
    assert [each.summary.get("missing", 0) for each in polls] == [2, 1, 0]
    assert made.execute_complete(found, event) == {"required": 4}
    assert made.execute(found) == {"required": 4}


def test_columns_of_the_sort_order_have_no_partitions(tables, make, catalog, caplog):
    make("PARTITIONED BY (n)")
    tables.sql("ALTER TABLE hms.waiting.fact WRITE ORDERED BY id, name")
    sql = joined("n", "id")
    with caplog.at_level(logging.INFO):
        required = required_by(tables, sql)
    assert (required.columns, required.all_columns) == (("n",), ("n",))
    assert required.tuples == tuple((number,) for number in range(11))
    assert "id is not waited for: f is sorted by the column" in caplog.text
    assert catalog.absent(required).tuples == ()
    assert required_partitions(tables, job_of(joined("id"))) == []
    with pytest.raises(PlanError, match="id are not columns to wait for: .* prune n"):
        required_partitions(tables, job_of(sql), ["id"])


def test_the_sensor_waits_for_combinations_of_keys_of_several_columns(tables, make, catalog):
    make("PARTITIONED BY (days(at), truncate(2, name), n)")
    condition = "k.id IN (-50, -49, 149)"
    required = required_by(tables, joined("at", "name", condition=condition))
    assert required.columns == ("at", "name")
    absent = catalog.absent(required).tuples
    assert len(required.tuples) == 3
    assert absent == required.tuples[2:]
    required = required_by(tables, joined("at", "name", condition=condition), ["NAME"])
    assert required.columns == ("name",)
    assert catalog.absent(required).tuples == ()


def test_required_partitions_are_found_after_the_partition_spec_changes(tables, make, catalog):
    rows = "SELECT id, date_add(DATE'2024-01-01', CAST(id AS INT)) AS day FROM range({}, {})"
    make("PARTITIONED BY (months(day))", rows.format(0, 10))
    make("", rows.format(0, 20), name="wanted")
    sql = "SELECT f.id FROM hms.waiting.fact f JOIN hms.waiting.wanted k ON f.day = k.day"

    def absent():
        return catalog.absent(required_by(tables, sql)).tuples

    assert absent() == ()
    tables.sql("ALTER TABLE hms.waiting.fact REPLACE PARTITION FIELD months(day) WITH day")
    assert absent() == days(*range(11, 21))
    tables.sql(f"INSERT INTO hms.waiting.fact {rows.format(12, 14)}")
    assert absent() == days(11, 12, *range(15, 21))
    tables.sql("ALTER TABLE hms.waiting.fact ADD PARTITION FIELD bucket(2, id)")
    tables.sql(f"INSERT INTO hms.waiting.fact {rows.format(14, 20)}")
    assert absent() == days(11, 12)
    required = required_by(tables, sql)
    tables.sql("ALTER TABLE hms.waiting.fact DROP PARTITION FIELD day")
    assert catalog.absent(required).tuples == days(11, 12)
    assert required_partitions(tables, job_of(sql)) == []


def test_deleted_rows_and_dropped_tables_are_missing_partitions(tables, make, catalog):
    rows = (
        "SELECT id, date_add(DATE'2024-01-01', CAST(id % 2 AS INT)) AS day FROM range(4) "
        "DISTRIBUTE BY id % 2"
    )
    make("PARTITIONED BY (day)", rows)
    make("", rows, name="wanted")
    tables.sql(
        "ALTER TABLE hms.waiting.fact SET TBLPROPERTIES "
        "('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    sql = "SELECT f.id FROM hms.waiting.fact f JOIN hms.waiting.wanted k ON f.day = k.day"
    required = required_by(tables, sql)
    tables.sql("DELETE FROM hms.waiting.fact WHERE id IN (0, 2)")
    assert tables.sql("SELECT 1 FROM hms.waiting.fact WHERE day = '2024-01-01'").head() is None
    assert catalog.absent(required).tuples == ()  # their file is still there
    tables.sql("DELETE FROM hms.waiting.fact WHERE day = '2024-01-02'")
    assert catalog.absent(required).tuples == days(2)
    tables.sql("DROP TABLE hms.waiting.fact PURGE")
    absent = catalog.absent(required)
    assert (absent.tuples, absent.note) == (
        days(1, 2),
        "the catalog has no Iceberg table waiting.fact",
    )
    make("PARTITIONED BY (day)", f"{rows} LIMIT 0")
    assert catalog.absent(required).tuples == days(1, 2)


def test_the_target_of_a_merge_is_not_waited_for(tables, make, caplog):
    make("PARTITIONED BY (day)")
    sql = (
        "MERGE INTO hms.waiting.fact f USING hms.waiting.keys k ON f.day = k.day AND f.id = k.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    with caplog.at_level(logging.INFO):
        assert required_partitions(tables, job_of(sql)) == []
    assert "f is not waited for: the statement changes its rows" in caplog.text


def test_a_statement_may_require_iceberg_and_hive_partitions(tables, make):
    """Each entry says whose it is; the name's case is the statement's."""
    make("PARTITIONED BY (n)")
    tables.sql("CREATE TABLE default.plain (id INT) USING parquet PARTITIONED BY (n INT)")
    try:
        found = required_partitions(
            tables,
            job_of(
                "SELECT f.id FROM hms.WAITING.Fact f JOIN hms.waiting.keys k ON f.n = k.n "
                "UNION ALL SELECT p.id FROM default.plain p JOIN hms.waiting.keys k ON p.n = k.n"
            ),
        )
        assert {each.table: each.provider for each in found} == {
            "hms.WAITING.Fact": "iceberg",
            "default.plain": "",
        }
    finally:
        tables.sql("DROP TABLE default.plain")


def test_table_and_column_names_in_another_case_are_found(tables, make, catalog):
    make("PARTITIONED BY (n)")
    sql = joined("N").replace("waiting.fact", "WAITING.Fact")
    assert catalog.absent(required_by(tables, sql)).tuples == ()
