"""The files of a SELECT are those of its own plan, unless something must know them before it."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.gates import GateClosed
from airflow_hive_opt.provider.earlier_runs import skipped_keys_in
from airflow_hive_opt.spark.local_task import lake_scans
from airflow_hive_opt.spark.map_join import planned_scans
from tests.lakes.databases import drop_database
from tests.lakes.runs import rows_of, run, run_apart
from tests.spark.stages import job_of, prune

DAYS = 20
SQL = "SELECT b.id FROM counts.big b JOIN counts.some s ON b.day = s.day"


@pytest.fixture(scope="module")
def tables(lake):
    lake.sql("CREATE DATABASE counts")
    lake.sql(
        "CREATE TABLE counts.big USING delta PARTITIONED BY (day) AS SELECT id, "
        f"date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) AS day FROM range(0, 100, 1, 1)"
    )
    lake.sql("INSERT INTO counts.big VALUES (100, DATE'2024-01-03')")
    lake.sql(
        "CREATE TABLE counts.some USING parquet AS SELECT * FROM VALUES (DATE'2024-01-03'), "
        "(DATE'2024-01-05'), (DATE'2030-01-01') AS t(day)"
    )
    yield lake
    drop_database(lake, "counts")


@pytest.fixture
def counts(monkeypatch):
    """The scans whose files are counted by a query: before the statement, and after it."""
    found: dict[str, list[str]] = {"before": [], "after": []}
    for when, module in (("before", lake_scans), ("after", planned_scans)):
        real = module.counted

        def counted(session, files, real=real, when=when):
            found[when].append(files.scan.name)
            return real(session, files)

        monkeypatch.setattr(module, "counted", counted)
    return found


def numbers(planned) -> tuple[int | None, ...]:
    return planned.partitions, planned.files, planned.total_files


def test_the_statements_own_plan_tells_the_files(tables, tmp_path, counts):
    found = run(tables, SQL, tmp_path)
    assert found.rows == rows_of(tables, SQL)
    assert counts == {"before": [], "after": []}
    (planned,) = found.report.descriptor.planned_files
    assert numbers(planned) == (2, 3, DAYS + 1)
    assert planned.bytes < planned.total_bytes
    assert planned.keys_digest is None
    assert found.files("counts.big") == 3


@pytest.mark.parametrize("name", ["COUNTS.Big", "spark_catalog.counts.BIG", "delta.`{path}`"])
def test_it_tells_them_whatever_the_table_is_called(tables, tmp_path, counts, name):
    path = tables.sql("DESCRIBE DETAIL counts.big").head()["location"].removeprefix("file:")
    sql = SQL.replace("counts.big", name.format(path=path))
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert numbers(found.report.descriptor.planned_files[0]) == (2, 3, DAYS + 1)
    assert counts == {"before": [], "after": []}


def test_it_tells_them_for_a_long_list_and_for_one_value(tables, tmp_path, counts):
    for days in (15, 1):  # Spark makes a set of a list with more than ten values, and = of one
        tables.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW days AS SELECT DISTINCT day FROM counts.big "
            f"WHERE day BETWEEN DATE'2024-01-05' AND date_add(DATE'2024-01-05', {days - 1})"
        )
        tables.sql(f"CREATE TABLE counts.days_{days} USING parquet AS SELECT * FROM days")
        sql = f"SELECT b.id FROM counts.big b JOIN counts.days_{days} d ON b.day = d.day"
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql)
        (planned,) = found.report.descriptor.planned_files
        assert numbers(planned) == (days, days, DAYS + 1)
    assert counts == {"before": [], "after": []}


def test_it_tells_as_much_as_a_count_before_it(tables, tmp_path, counts):
    (of_plan,) = run(tables, SQL, tmp_path).report.descriptor.planned_files
    apart = run_apart(tables, SQL, tmp_path)
    assert (of_plan,) == apart.report.descriptor.planned_files
    assert counts == {"before": ["b"], "after": []}


def test_a_gate_counts_before_the_statement(tables, tmp_path, counts):
    found = run(tables, SQL, tmp_path, max_partitions=2)
    assert numbers(found.report.descriptor.planned_files[0]) == (2, 3, DAYS + 1)
    with pytest.raises(GateClosed, match="would read 2 partitions, but max_partitions is 1"):
        run(tables, SQL, tmp_path, max_partitions=1)
    assert counts == {"before": ["b", "b"], "after": []}


def test_a_statement_that_shows_no_rows_or_writes_counts_before_it(tables, tmp_path, counts):
    writes = f"CREATE TABLE counts.copy USING delta AS {SQL}"
    for job in (job_of(SQL, show_rows=0), job_of(writes, show_rows=9)):
        (planned,) = prune(
            tables, job, UPath(tmp_path / "d"), hand_over=False
        ).descriptor.planned_files
        assert numbers(planned) == (2, 3, DAYS + 1)
    assert counts == {"before": ["b", "b"], "after": []}


OTHERS = " UNION ALL SELECT id FROM counts.big"
EMPTY_AT_RUN_TIME = "JOIN (SELECT id FROM counts.big WHERE id + 0 > 1000) e ON e.id = b.id"


@pytest.mark.parametrize(
    ("sql", "files", "after"),
    [
        # another scan of the table is in the plan, the restricted one is not
        (SQL + " WHERE s.day = DATE'1999-01-01'" + OTHERS, 0, True),
        (f"{SQL} {EMPTY_AT_RUN_TIME}" + OTHERS, 3, None),
        # the plan has fewer files than the keys leave
        (SQL + " WHERE b.day < DATE'2024-01-04'", 3, True),
        (SQL + " WHERE b.id < 3", 3, True),
        (SQL + " WHERE b.day IN (DATE'2024-01-05', DATE'2024-01-07')", 3, True),
    ],
)
def test_the_numbers_are_those_of_the_keys_alone(tables, tmp_path, counts, sql, files, after):
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    planned = found.report.descriptor.planned_files
    assert [each.files for each in planned if each.scan.name == "b"] == [files]
    assert planned == run_apart(tables, sql, tmp_path).report.descriptor.planned_files
    assert "b" in counts["before"]  # of run_apart
    assert after is None or ("b" in counts["after"]) is after  # versions of Spark differ


@pytest.mark.parametrize(
    ("sql", "scans"),
    [
        (f"{SQL} JOIN counts.big c ON c.day = s.day AND c.id = b.id + 40", ["b", "c"]),
        # the other scan of the table does not have the condition
        (f"{SQL} WHERE b.id NOT IN (SELECT id FROM counts.big WHERE id > 90)", []),
    ],
)
def test_a_table_whose_scans_look_the_same_is_counted_after_the_statement(
    tables, tmp_path, counts, sql, scans
):
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert counts == {"before": [], "after": scans}
    assert {numbers(each) for each in found.report.descriptor.planned_files} == {(2, 3, DAYS + 1)}


def test_many_values_and_ranges_are_counted_before_the_statement(tables, tmp_path, counts):
    many = "SELECT b.id FROM counts.big b JOIN counts.many m ON b.day = m.day"
    ranges = "SELECT b.id FROM counts.big b JOIN counts.many m ON b.id = m.id AND b.day = m.day"
    tables.sql(
        "CREATE TABLE counts.many USING parquet AS SELECT id, "
        "date_add(DATE'2024-01-10', cast(id as int)) AS day FROM range(101)"
    )
    for sql in (many, ranges):
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql)
        assert "RESTRICTED" in found.reasons.values()
    assert counts == {"before": ["b", "b"], "after": []}


def test_keys_that_leave_nearly_all_files_are_not_read_by_the_next_run(tables, tmp_path, counts):
    tables.sql(
        "CREATE TABLE counts.two USING delta PARTITIONED BY (side) AS "
        "SELECT id, id % 2 AS side FROM range(0, 1000, 1, 60)"
    )
    tables.sql("CREATE TABLE counts.sides USING parquet AS SELECT * FROM VALUES (0L), (1L) v(side)")
    sql = "SELECT t.id FROM counts.two t JOIN counts.sides s ON t.side = s.side"
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert numbers(found.report.descriptor.planned_files[0]) == (2, 120, 120)
    assert found.reasons == {"t": "RESTRICTED"}
    again = run(tables, sql, tmp_path, skipped_keys=skipped_keys_in(found.report.summary()))
    assert (again.rows, again.reasons) == (found.rows, {"t": "NOT_ASKED_AGAIN"})
    assert counts == {"before": [], "after": []}
    half = run(tables, f"{sql} WHERE t.side < 1", tmp_path).report.descriptor
    assert half.decisions[0].skipped_keys is not None  # the keys have left all
    few = run(tables, f"{sql} WHERE s.side = 1", tmp_path).report.descriptor
    assert few.decisions[0].skipped_keys is None
