"""The files that Iceberg's metadata finds before the statement runs: counts and gates."""

from __future__ import annotations

import pytest

from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.documents.gates import GateClosed, NothingToDo
from airflow_hive_opt.documents.report import decision_lines, headline
from tests.lakes.runs import rows_of, run, run_apart

JOIN = "SELECT b.id FROM lake.counts.by_day b JOIN counts_days p ON b.day = p.day"


@pytest.fixture(scope="module")
def tables(lake):
    lake.sql("CREATE NAMESPACE lake.counts")
    rows = (
        "SELECT id, date_add(DATE'2024-01-01', cast(id % 20 as int)) AS day, "
        "timestamp_seconds(id * 90000) AS at, concat('k', id % 7) AS name FROM range(200)"
    )
    layouts = {"by_day": "day", "by_bucket": "bucket(8, id)"}
    for name, layout in layouts.items():
        lake.sql(
            f"CREATE TABLE lake.counts.{name} USING iceberg PARTITIONED BY ({layout}) AS {rows}"
        )
    lake.sql(
        "CREATE TABLE counts_days AS SELECT * FROM VALUES (DATE'2024-01-03', 5L), "
        "(DATE'2024-01-05', 7L), (DATE'2030-01-01', 900L), (NULL, NULL) AS t(day, id)"
    )
    yield lake
    for name in layouts:
        lake.sql(f"DROP TABLE lake.counts.{name}")
    lake.sql("DROP TABLE counts_days")


def planned(outcome):
    (found,) = outcome.report.descriptor.planned_files
    return found


@pytest.mark.parametrize(
    ("table", "condition", "partitions"),
    [
        ("by_day", "b.day = p.day", 2),
        ("by_bucket", "b.id = p.id AND p.id < 6", 1),
        ("by_day", "b.day = p.day AND p.id = 1", 0),
    ],
)
def test_the_files_counted_before_the_join_are_those_that_it_reads(
    tables, tmp_path, table, condition, partitions
):
    sql = f"SELECT b.id FROM lake.counts.{table} b JOIN counts_days p ON {condition}"
    outcome = run(tables, sql, tmp_path)
    found = planned(outcome)
    reads = [read for read in outcome.report.reads if read.table == f"lake.counts.{table}"]
    assert found.files == sum(read.files for read in reads)  # without files Spark has no scan
    assert found.bytes == sum(read.bytes for read in reads)
    assert found.partitions == partitions
    assert [read.total_bytes for read in reads] == [found.total_bytes] * len(reads)
    assert found.total_files == tables.table(f"lake.counts.{table}.files").count()


def test_files_of_a_range_of_keys_are_counted(tables, tmp_path):
    tables.sql("CREATE OR REPLACE TEMPORARY VIEW even_ids AS SELECT id * 2 AS id FROM range(300)")
    sql = "SELECT b.id FROM lake.counts.by_bucket b JOIN even_ids m ON b.id = m.id AND m.id < 40"
    outcome = run(tables, sql, tmp_path, max_keys=5)
    assert outcome.report.descriptor.row_filters[0].is_range
    assert planned(outcome).files == outcome.files("lake.counts.by_bucket") == 8


def test_files_are_counted_after_the_partition_spec_changed(tables, tmp_path):
    tables.sql("CREATE TABLE lake.counts.evolved USING iceberg AS SELECT * FROM lake.counts.by_day")
    tables.sql("ALTER TABLE lake.counts.evolved ADD PARTITION FIELD day")
    tables.sql("INSERT INTO lake.counts.evolved SELECT * FROM lake.counts.by_day")
    try:
        outcome = run(tables, JOIN.replace("by_day", "evolved"), tmp_path)
        found = planned(outcome)
        assert found.files == outcome.files("lake.counts.evolved")
        assert found.partitions is None
        with pytest.raises(GateClosed, match="max_partitions can't be checked"):
            run(tables, JOIN.replace("by_day", "evolved"), tmp_path, max_partitions=100)
    finally:
        tables.sql("DROP TABLE lake.counts.evolved")


def test_files_are_counted_if_a_view_renames_the_column(tables, tmp_path):
    tables.sql("CREATE VIEW renamed AS SELECT id, DAY AS ds FROM lake.counts.by_day")
    sql = "SELECT b.id FROM renamed b JOIN counts_days p ON b.ds = p.day"
    try:
        outcome = run(tables, sql, tmp_path)
        assert planned(outcome).files == outcome.files("lake.counts.by_day") == 2
    finally:
        tables.sql("DROP VIEW renamed")


def test_files_of_a_branch_are_not_counted(tables, tmp_path):
    tables.sql("ALTER TABLE lake.counts.by_day CREATE BRANCH old")
    outcome = run(tables, JOIN.replace("by_day", "by_day.branch_old"), tmp_path)
    found = planned(outcome)
    assert (found.files, found.partitions) == (None, None)
    with pytest.raises(GateClosed, match="max_bytes can't be checked"):
        run(tables, JOIN.replace("by_day", "by_day.branch_old"), tmp_path, max_bytes=1 << 40)


def test_headline_summary_and_text_of_a_descriptor_have_the_counted_files(tables, tmp_path):
    outcome = run(tables, JOIN, tmp_path)
    descriptor = outcome.report.descriptor
    assert headline(descriptor) == "2 of 20 files of by_day by day in 3 keys of counts_days"
    decisions = outcome.report.summary()["decisions"]
    assert "2 of 20 files" in decision_lines(decisions)[1]
    assert {"partitions": 2, "files": 2, "total_files": 20}.items() <= decisions[0].items()
    assert "2 of 20 files, in 2 partitions" in descriptor_to_text(descriptor)


def test_a_condition_that_leaves_nearly_all_files_is_left_out(tables, tmp_path):
    tables.sql(
        "CREATE TABLE lake.counts.wide USING iceberg PARTITIONED BY (n) AS "
        "SELECT /*+ COALESCE(1) */ id AS n, id % 7 AS v FROM range(120)"
    )
    sql = "SELECT w.v FROM lake.counts.wide w JOIN (SELECT id AS n FROM range({})) d ON w.n = d.n"
    try:
        for count, reason in ((120, "ALL_FILES_MATCH"), (115, "MOST_FILES_MATCH")):
            found = run(tables, sql.format(count), tmp_path)
            assert found.reasons == {"w": reason}
            assert found.statement == sql.format(count)
            assert found.rows == rows_of(tables, sql.format(count))
            skipped = found.report.descriptor.decisions[0].skipped_keys
            again = run(tables, sql.format(count), tmp_path, skipped_keys={skipped.digest: 0})
            assert again.reasons == {"w": "NOT_ASKED_AGAIN"}
            assert again.report.descriptor.decisions[0].skipped_keys.runs == 1
        few = run(tables, sql.format(100), tmp_path)
        assert (few.reasons, few.files("lake.counts.wide")) == ({"w": "RESTRICTED"}, 100)
    finally:
        tables.sql("DROP TABLE lake.counts.wide")


def test_max_partitions_and_max_bytes_use_the_counted_files(tables, tmp_path):
    size = planned(run(tables, JOIN, tmp_path, max_partitions=2)).bytes
    with pytest.raises(GateClosed, match="would read 2 partitions, but max_partitions is 1"):
        run(tables, JOIN, tmp_path, max_partitions=1)
    run(tables, JOIN, tmp_path, max_bytes=size)
    too_much = f"would read {size:,} bytes, but max_bytes is {size - 1:,}"
    with pytest.raises(GateClosed, match=too_much):
        run(tables, JOIN, tmp_path, max_bytes=size - 1)


def test_a_join_whose_keys_match_no_file_can_be_skipped(tables, tmp_path):
    nothing = f"{JOIN} AND p.id = 900"
    assert run(tables, nothing, tmp_path).rows == []
    with pytest.raises(NothingToDo, match="the keys match no partition of b"):
        run(tables, nothing, tmp_path, on_empty="skip")


def test_merge_into_a_new_day_is_not_skipped(tables, tmp_path):
    tables.sql(
        "CREATE TABLE lake.counts.merged USING iceberg PARTITIONED BY (day) AS "
        "SELECT * FROM lake.counts.by_day"
    )
    merge = (
        "MERGE INTO lake.counts.merged t USING (SELECT * FROM counts_days WHERE id = 900) c "
        "ON t.id = c.id AND t.day = c.day "
        "WHEN MATCHED THEN UPDATE SET name = 'u'"
    )
    try:
        with pytest.raises(NothingToDo):
            run(tables, merge, tmp_path, on_empty="skip")
        inserting = f"{merge} WHEN NOT MATCHED THEN INSERT (id, day) VALUES (c.id, c.day)"
        run(tables, inserting, tmp_path, on_empty="skip")
        assert len(rows_of(tables, "SELECT * FROM lake.counts.merged")) == 201
    finally:
        tables.sql("DROP TABLE lake.counts.merged")


def test_the_map_join_of_another_task_counts_files_again(tables, tmp_path):
    tables.sql(
        "CREATE TABLE lake.counts.grown USING iceberg PARTITIONED BY (day) AS "
        "SELECT * FROM lake.counts.by_day"
    )
    sql = JOIN.replace("by_day", "grown")

    def insert():
        tables.sql("INSERT INTO lake.counts.grown SELECT * FROM lake.counts.by_day")

    try:
        with pytest.raises(GateClosed, match="would read"):
            size = planned(run(tables, sql, tmp_path)).bytes
            run_apart(tables, sql, tmp_path, insert, max_bytes=size)
    finally:
        tables.sql("DROP TABLE lake.counts.grown")
