"""Key indexes of tables whose partitions are years, months, days or hours of a column."""

from __future__ import annotations

import pytest
from upath import UPath

from tests.lakes.iceberg.indexes import build_index
from tests.lakes.runs import rows_of, run
from tests.lakes.session import another_session, needs_jvm

pytestmark = needs_jvm
PERIODS = 40
EVENTS = "lake.kit.events"
JOIN = f"SELECT e.* FROM {EVENTS} e JOIN lake.kit.picked p ON e.id = p.id"
MERGE = (
    "MERGE INTO {t} e USING lake.kit.picked p ON e.id = p.id "
    "WHEN MATCHED THEN UPDATE SET v = -1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (p.id, 9)"
)
# layout, what an event's number becomes, and a value near the end of its period
LAYOUTS = {
    "days(at)": ("at timestamp", "id % 40", "DAY", "INTERVAL '23:59:59.999999' HOUR TO SECOND"),
    "hours(at)": ("at timestamp", "id % 40", "HOUR", "INTERVAL '59:59.999999' MINUTE TO SECOND"),
    "months(at)": ("at timestamp", "id % 40", "MONTH", "INTERVAL '27 23:59' DAY TO MINUTE"),
    "years(at)": ("at timestamp", "id % 40", "YEAR", "INTERVAL '364 23:59' DAY TO MINUTE"),
    "months(on)": ("on date", "id % 40", "MONTH", "INTERVAL '27' DAY"),
    "days(on)": ("on date", "id % 40", "DAY", "INTERVAL '0' DAY"),
    "years(on)": ("on date", "id % 40", "YEAR", "INTERVAL '364' DAY"),
    "bucket(4, id), days(at)": ("at timestamp", "id % 40", "DAY", "INTERVAL '5' HOUR"),
    "years(at), v": ("at timestamp", "id % 40", "YEAR", "INTERVAL '5' HOUR"),
}


@pytest.fixture(scope="module")
def session(lake):
    """A session in another time zone than UTC, in which Iceberg counts."""
    session = another_session(lake)
    session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    session.sql("CREATE NAMESPACE lake.kit")
    session.sql(
        "CREATE TABLE lake.kit.picked USING iceberg AS SELECT * FROM VALUES (3L), (43L), (7L), "
        "(9000L), (5000L), (NULL) AS t(id)"
    )
    return session


@pytest.fixture
def root(tmp_path):
    return UPath(tmp_path / "indexes")


def made(session, root, layout: str, first: str = "1950-01-01", name: str = "events") -> None:
    """Events from before 1970 on, the first and the last moment of each period, and NULL."""
    column, number, unit, last = LAYOUTS[layout]
    table, type_ = f"lake.kit.{name}", column.split()[1]
    session.sql(f"DROP TABLE IF EXISTS {table} PURGE")
    session.sql(
        f"CREATE TABLE {table} (id bigint, v int, {column}) USING iceberg "
        f"PARTITIONED BY ({layout}) TBLPROPERTIES ('format-version' = '2')"
    )
    begin = f"TIMESTAMPADD({unit}, CAST({number} AS int), TIMESTAMP'{first} 00:00:00Z')"
    session.sql(
        f"INSERT INTO {table} SELECT id, CAST(id % 3 AS int), CAST(at AS {type_}) FROM ("
        f"SELECT id, {begin} AS at FROM range(200) UNION ALL "
        f"SELECT id + 200, {begin} + {last} FROM range(200) UNION ALL SELECT 9000, NULL)"
    )
    if name == "events":
        build_index(session, root, table, "id")


@pytest.mark.parametrize("first", ["1950-01-01", "1969-12-30", "2024-01-01"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_periods_of_the_files_become_ranges(session, tmp_path, root, layout, first):
    made(session, root, layout, first)
    found = run(session, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(session, JOIN)
    assert {row[0] for row in found.rows} == {3, 7, 43, 9000}
    (use,) = found.report.descriptor.index_uses
    assert use.code == "USED"
    assert found.files(EVENTS) < use.total_files / 2
    conditions = found.report.descriptor.index_filters
    assert any(each.is_range and each.or_null for each in conditions)


@pytest.mark.parametrize("ids", ["IN (9000)", "= 5000", "IN (9000, 7)"])
def test_keys_of_no_period(session, tmp_path, root, ids):
    """All of their files have a NULL, or there are none."""
    made(session, root, "days(at)")
    sql = f"{JOIN} AND p.id {ids}"
    found = run(session, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(session, sql)
    assert [use.code for use in found.report.descriptor.index_uses] == ["USED"]


@pytest.mark.parametrize("layout", ["days(at)", "months(on)", "years(at)"])
def test_merge_changes_what_plain_spark_changes(session, tmp_path, root, layout):
    for name in ("events", "plain"):
        made(session, root, layout, name=name)
    found = run(session, MERGE.format(t=EVENTS), tmp_path, index_path=str(root))
    session.sql(MERGE.format(t="lake.kit.plain"))
    both = [rows_of(session, f"SELECT * FROM lake.kit.{name}") for name in ("events", "plain")]
    assert both[0] == both[1]
    assert [use.code for use in found.report.descriptor.index_uses] == ["USED"]


@pytest.mark.parametrize(
    ("column", "layout"),
    [
        ("at timestamp", "bucket(4, id)"),
        ("name string", "truncate(1, name)"),
        ("at timestamp_ntz", "days(at)"),
        ("at timestamp", ""),
    ],
)
def test_other_layouts_say_that_they_have_no_values(session, tmp_path, root, column, layout):
    session.sql(f"DROP TABLE IF EXISTS {EVENTS} PURGE")
    session.sql(
        f"CREATE TABLE {EVENTS} (id bigint, v int, {column}) USING iceberg "
        + (f"PARTITIONED BY ({layout})" if layout else "")
    )
    session.sql(f"INSERT INTO {EVENTS} SELECT id, 1, NULL FROM range(50)")
    build_index(session, root, EVENTS, "id")
    found = run(session, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(session, JOIN)
    (use,) = found.report.descriptor.index_uses
    assert use.code == "NO_PARTITION_VALUES"
    assert "VERSION AS OF" not in found.statement


def test_a_layout_that_files_do_not_all_have_gives_no_condition(session, tmp_path, root):
    made(session, root, "days(at)")
    session.sql(f"ALTER TABLE {EVENTS} REPLACE PARTITION FIELD at_day WITH months(at)")
    session.sql(f"INSERT INTO {EVENTS} VALUES (3, 0, TIMESTAMP'2030-01-01 00:00:00')")
    build_index(session, root, EVENTS, "id")
    found = run(session, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(session, JOIN)
    assert {use.code for use in found.report.descriptor.index_uses} == {"NO_PARTITION_VALUES"}
