"""Incremental models whose MERGE reads only the days that its source has."""

from __future__ import annotations

import pytest
from dbt.context.providers import BaseDatabaseWrapper

from tests.lakes.delta.scanned import files_read

DAYS = 40
ROW = (
    "CAST(n AS INT) AS id, CAST(n AS STRING) AS v, "
    "date_add(DATE'2026-01-01', CAST(n AS INT)) AS day"
)


@pytest.fixture(autouse=True)
def tables(lake, project):
    """A day is a partition with a file. The model has them all after its first run."""
    create(lake, project)
    yield
    lake.sql("DROP TABLE dw.sales")


def create(lake, project) -> None:
    lake.sql("DROP TABLE IF EXISTS dw.sales")
    changes(lake, f"SELECT {ROW} FROM range({DAYS}) AS r(n)")
    project.run()


def changes(lake, sql: str) -> None:
    """What the model selects next."""
    lake.sql(f"CREATE OR REPLACE TEMPORARY VIEW changes AS {sql}")


def rows(lake) -> list[tuple[object, ...]]:
    return sorted(map(tuple, lake.table("dw.sales").collect()), key=repr)


def merged(lake, project, sql: str, **config):
    """Rows afterwards, files that MERGE read, and what dbt said."""
    create(lake, project)
    changes(lake, sql)
    told: list[str] = []
    files = files_read(lake, "dw.sales", lambda: told.extend(project.run(**config)))
    return rows(lake), files, told


CHANGES = {
    "some days": f"SELECT {ROW} FROM range(3, 6) AS r(n)",
    "a new day": f"SELECT {ROW} FROM range({DAYS - 1}, {DAYS + 1}) AS r(n)",
    "a null": f"SELECT {ROW} FROM range(3, 4) AS r(n) UNION ALL SELECT 9, 'n', NULL",
    "no rows": f"SELECT {ROW} FROM range(0) AS r(n)",
    "another row of a day": "SELECT 77 AS id, 'x' AS v, DATE'2026-01-05' AS day",
}


@pytest.mark.parametrize("sql", CHANGES.values(), ids=CHANGES)
def test_a_merge_reads_the_days_of_its_source_only(lake, project, sql):
    pruned, files, _ = merged(lake, project, sql, meta={"prune_by": "day"})
    plain, all_files, _ = merged(lake, project, sql, with_package=False)
    assert pruned == plain
    assert max(files, default=0) <= 3
    assert max(all_files, default=0) == (0 if "range(0)" in sql else DAYS)


def test_a_model_that_does_not_ask_for_it_is_untouched(lake, project):
    _, files, _ = merged(lake, project, CHANGES["some days"])
    assert max(files) == DAYS


DAY = {
    "int": "CAST(n AS INT)",
    "bigint": "n - 9223372036854775807",
    "string": "concat('2026-01-', CAST(10 + n AS STRING))",
}


@pytest.mark.parametrize("day", DAY.values(), ids=DAY)
def test_keys_of_other_types(lake, project, day):
    """Also a text that looks like a date: it must stay a text on its way through dbt."""
    row = f"CAST(n AS INT) AS id, CAST(n AS STRING) AS v, {day} AS day"
    lake.sql("DROP TABLE dw.sales")
    changes(lake, f"SELECT {row} FROM range({DAYS}) AS r(n)")
    project.run()
    changes(
        lake, f"SELECT {row.replace('(n AS STRING)', '(-n AS STRING)')} FROM range(3, 5) AS r(n)"
    )
    files = files_read(lake, "dw.sales", lambda: project.run(meta={"prune_by": "day"}))
    assert max(files) == 2
    assert [row["v"] for row in lake.table("dw.sales").where("v < 0").sort("id").collect()] == [
        "-3",
        "-4",
    ]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("concat('a', chr(39))", "a key has characters"),
        ("concat('a', chr(92))", "a key has characters"),
        ("concat(chr(36), '{a}')", "a key has characters"),
    ],
)
def test_keys_that_no_literal_can_have(lake, project, key, why):
    lake.sql("DROP TABLE dw.sales")
    changes(lake, f"SELECT 1 AS id, 'a' AS v, {key} AS day")
    project.run()
    changes(lake, f"SELECT 1 AS id, 'b' AS v, {key} AS day")
    told = project.run(meta={"prune_by": "day"})
    assert any(f"is not pruned by day: {why}" in line for line in told)
    assert [row["v"] for row in lake.table("dw.sales").collect()] == ["b"]


@pytest.mark.parametrize(
    ("source", "config", "why"),
    [
        ("some days", {"prune_keys": 2}, "more than 2 keys (prune_keys)"),
        ("moment", {}, "it is timestamp in the source and date in the table"),
    ],
)
def test_what_is_not_pruned_is_told(lake, project, source, config, why):
    moment = "SELECT 3 AS id, 'x' AS v, TIMESTAMP'2026-01-04 00:00:00' AS day"
    sql = {**CHANGES, "moment": moment}[source]
    found, files, told = merged(lake, project, sql, meta={"prune_by": "day", **config})
    assert max(files) == DAYS
    assert any(why in line for line in told)
    assert found == merged(lake, project, sql, with_package=False)[0]


def test_strings_are_compared_one_by_one(lake, project):
    """Iceberg 1.11, which is not here, fails on a list of strings if a partition is NULL."""
    row = "CAST(n AS INT) AS id, 'x' AS v, concat('d', n) AS day"
    lake.sql("DROP TABLE dw.sales")
    changes(lake, f"SELECT {row} FROM range({DAYS}) AS r(n) UNION ALL SELECT -1, 'x', NULL")
    project.run()
    changes(lake, f"SELECT {row} FROM range(3, 5) AS r(n)")
    told = project.run(meta={"prune_by": "day"})
    merge = next(text for text in told if "merge into" in text)
    assert "(DBT_INTERNAL_DEST.`day` = 'd3' or DBT_INTERNAL_DEST.`day` = 'd4')" in merge


def test_an_adapter_that_builds_on_dbt_spark_is_refused(lake, project, monkeypatch):
    """Its own MERGE would be replaced, also for models that do not ask for it."""
    monkeypatch.setattr(BaseDatabaseWrapper, "type", lambda _: "another", raising=False)
    with pytest.raises(AssertionError, match="is for dbt-spark, and this is dbt-another"):
        project.run()


def test_a_column_outside_the_unique_key_is_refused(lake, project):
    with pytest.raises(AssertionError, match="prune_by must be one column of unique_key"):
        project.run(meta={"prune_by": "v"})
    with pytest.raises(AssertionError, match="prune_by must be one column of unique_key"):
        project.run(meta={"prune_by": ["day"]})


def test_a_source_that_changes_between_the_queries_fails_the_model(lake, project):
    """Its row could be inserted twice: the table has its day, and the MERGE would not see it."""
    changes(lake, f"SELECT {ROW} FROM range(3, 4) AS r(n)")
    before = rows(lake)
    with pytest.raises(AssertionError, match="the source of the MERGE has changed"):
        project.run(
            model=(
                "select id, v, date_add(day, cast(rand() * 30 as int)) as day from changes "
                "lateral view explode(sequence(1, 50)) as n"
            ),
            meta={"prune_by": "day"},
        )
    assert rows(lake) == before
