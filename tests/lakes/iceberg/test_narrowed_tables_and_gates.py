"""Keys of large tables with gates, between two tasks, after a fallback, and by the checker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from upath import UPath

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.gates import GateClosed
from airflow_hive_opt.key_index.checker import NotCheckedError, problems_of_descriptor
from airflow_hive_opt.restriction import restrict
from airflow_hive_opt.spark.local_task.table_parts import TableParts
from tests.lakes.iceberg.facts import (
    CLAIMS,
    JOIN,
    LARGE,
    NARROWED,
    RETURNS,
    SALES,
    SPACE,
    create_facts,
    drop_facts,
)
from tests.lakes.iceberg.indexes import static_table
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import needs_jvm

pytestmark = needs_jvm
CHAIN = f"SELECT s.ticket, c.v, r.v {NARROWED} JOIN {CLAIMS} c ON c.cart = s.cart WHERE d.week = 3"
EMPTY = (
    f"SELECT s.ticket, r.v FROM {SALES} s JOIN {SPACE}.days d ON s.day = d.day "
    f"LEFT JOIN {RETURNS} r ON s.ticket = r.ticket WHERE d.week = 3"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return UPath(tmp_path_factory.mktemp("gates") / "indexes")


@pytest.fixture(scope="module")
def facts(lake, root):
    create_facts(lake, root)
    yield lake
    drop_facts(lake)


@pytest.fixture
def options(root):
    return {"settings": LARGE, "index_path": str(root)}


@pytest.fixture
def changing(facts):
    """The tables, whose changes are taken back."""
    names = (SALES, RETURNS, CLAIMS, f"{SPACE}.shops")
    before = {name: _snapshot(facts, name) for name in names}
    yield facts
    for name in names:
        if _snapshot(facts, name) != before[name]:
            table = name.partition(".")[2]
            facts.sql(f"CALL lake.system.rollback_to_snapshot('{table}', {before[name]})")


def _snapshot(session, table: str) -> int:
    history = f"SELECT snapshot_id FROM {table}.history ORDER BY made_current_at DESC"
    return session.sql(history).head()[0]


def codes(found) -> dict[str, str]:
    """The code of each hop that was asked, by its scan."""
    uses = (use for use in found.report.descriptor.index_uses if use.hop is not None)
    return {use.scan.alias: str(use.code) for use in uses if use.code != "COSTS_MORE"}


def held(found) -> set[str]:
    return {each.scan.alias for each in found.report.descriptor.held_scans}


@pytest.fixture
def target(facts):
    facts.sql(f"CREATE TABLE {SPACE}.made (ticket bigint, v int) USING iceberg")
    yield f"{SPACE}.made"
    facts.sql(f"DROP TABLE {SPACE}.made PURGE")


@pytest.mark.parametrize("on_empty", ["skip", "fail", "run"])
def test_an_empty_scan_of_a_hop_is_no_empty_result(facts, tmp_path, options, target, on_empty):
    expected = rows_of(facts, EMPTY)
    sql = f"INSERT INTO {target} {EMPTY}"
    found = run(facts, sql, tmp_path, on_empty=on_empty, **options)
    (use,) = (each for each in found.report.descriptor.index_uses if each.scan.alias == "r")
    assert (use.code, use.hop.files) == ("USED", 0)
    assert rows_of(facts, f"SELECT * FROM {target}") == expected
    assert len(expected) == 20


def test_limits_count_what_the_statement_would_read_without_hops(facts, tmp_path, options, target):
    plain = run(facts, JOIN, tmp_path, settings=LARGE)
    (planned,) = plain.report.descriptor.planned_files
    limits = {"max_bytes": planned.bytes, "max_partitions": planned.partitions}
    found = run(facts, JOIN, tmp_path, **limits, **options)
    assert (codes(found), found.rows) == ({"s": "USED"}, plain.rows)
    with pytest.raises(GateClosed):
        run(facts, JOIN, tmp_path, max_bytes=planned.bytes - 1, **options)
    sql = f"INSERT INTO {target} SELECT s.ticket, s.v {NARROWED} WHERE d.week = 3"
    found = run(facts, sql, tmp_path, **limits, **options)
    (counted,) = found.report.descriptor.planned_files
    assert (counted.files, counted.bytes) == (planned.files, planned.bytes)
    assert len(rows_of(facts, f"SELECT * FROM {target}")) == len(plain.rows)


def test_a_statement_that_spark_rejects_runs_without_hops(
    facts, tmp_path, options, target, monkeypatch
):
    monkeypatch.setattr(restrict, "_version", lambda _: " VERSION AS OF 1")
    plain = run(facts, JOIN, tmp_path, settings=LARGE)
    limits = {"max_bytes": plain.report.descriptor.planned_files[0].bytes}
    found = run(facts, JOIN, tmp_path, **limits, **options)
    assert (found.rows, codes(found)) == (rows_of(facts, JOIN), {"s": "NO_FIXED_SNAPSHOT"})
    assert (found.files(RETURNS), held(found), "VERSION" in found.statement) == (2, set(), False)
    sql = f"INSERT INTO {target} {EMPTY}"
    run(facts, sql, tmp_path, on_empty="skip", **options)
    assert rows_of(facts, f"SELECT * FROM {target}") == rows_of(facts, EMPTY)


def test_a_table_that_the_statement_writes_is_neither_narrowed_nor_followed(
    changing, tmp_path, options
):
    sql = f"INSERT INTO {SALES} SELECT s.* {NARROWED} WHERE d.week = 3"
    before, new = (
        rows_of(changing, f"SELECT * FROM {SALES}"),
        rows_of(changing, sql[len(f"INSERT INTO {SALES} ") :]),
    )
    found = run(changing, sql, tmp_path, **options)
    assert codes(found)["s"] == "NO_FIXED_SNAPSHOT"
    after = rows_of(changing, f"SELECT * FROM {SALES}")
    assert after == sorted([*before, *new], key=repr)


def test_two_tasks_use_hops_while_the_tables_stay_the_same(facts, tmp_path, options):
    found = run_apart(facts, CHAIN, tmp_path, **options)
    assert (found.rows, codes(found)) == (rows_of(facts, CHAIN), {"s": "USED", "c": "USED"})
    assert tuple(map(found.files, (SALES, RETURNS, CLAIMS))) == (5, 2, 5)


MOVED = {
    # a return of another ticket in the part whose keys were read
    RETURNS: "SELECT 1L, 1, 1, DATE'2024-01-07' UNION ALL SELECT 7L, 2, 1, DATE'2024-01-08'",
    SALES: "SELECT 60L, 31L, 0, 5, DATE'2024-02-01' UNION ALL SELECT 64L, 199L, 4, 5, "
    "DATE'2024-02-02'",
    CLAIMS: "SELECT 30L, 5, DATE'2024-02-05'",
}


@pytest.mark.parametrize(
    ("table", "expected", "kept"),
    [
        (RETURNS, {"s": "OTHER_SNAPSHOT", "c": "OTHER_SNAPSHOT"}, set()),
        (SALES, {"s": "OTHER_SNAPSHOT", "c": "OTHER_SNAPSHOT"}, set()),
        (CLAIMS, {"s": "USED", "c": "OTHER_SNAPSHOT"}, {"s", "r"}),
    ],
)
def test_a_table_that_changes_between_two_tasks_ends_the_hops_that_depend_on_it(
    changing, tmp_path, options, table, expected, kept
):
    before = rows_of(changing, CHAIN)
    found = run_apart(
        changing,
        CHAIN,
        tmp_path,
        lambda: changing.sql(f"INSERT INTO {table} {MOVED[table]}"),
        **options,
    )
    now = rows_of(changing, CHAIN)
    assert now != before
    assert (found.rows, codes(found), held(found)) == (now, expected, kept)


def test_a_small_table_that_changes_between_two_tasks_leaves_out_no_key(
    changing, tmp_path, options
):
    sql = (
        f"SELECT s.ticket, s.v, r.v, h.v {NARROWED} JOIN {SPACE}.shops h ON h.v = r.v "
        "WHERE d.week = 3 AND h.name = 'shop 2'"
    )
    shops = "SELECT CAST(id AS INT), 'shop 2' FROM range(9) WHERE id NOT IN (2, 5)"
    before = rows_of(changing, sql)
    found = run_apart(
        changing,
        sql,
        tmp_path,
        lambda: changing.sql(f"INSERT INTO {SPACE}.shops {shops}"),
        **options,
    )
    now = rows_of(changing, sql)
    assert now != before
    assert (found.rows, codes(found)) == (now, {"s": "USED"})


def test_rows_that_come_after_the_keys_are_not_read(changing, tmp_path, options, monkeypatch):
    """Within one task, both tables are read at the snapshots from which the keys came."""
    expected = rows_of(changing, CHAIN)
    texts = restrict.restrictions

    def changes(*arguments):
        monkeypatch.undo()
        for table, rows in MOVED.items():
            changing.sql(f"INSERT INTO {table} {rows}")
        return texts(*arguments)

    from airflow_hive_opt.spark.map_join import texts as module

    first = module.restrict
    monkeypatch.setattr(module, "restrict", lambda *given: (changes(*given), first(*given))[1])
    found = run(changing, CHAIN, tmp_path, **options)
    assert (found.rows, codes(found)) == (expected, {"s": "USED", "c": "USED"})
    assert rows_of(changing, CHAIN) != expected


def test_rows_deleted_before_the_key_query_are_still_read(changing, tmp_path, options, monkeypatch):
    """The keys come from the snapshot that the statement reads."""
    expected = rows_of(changing, CHAIN)
    narrowed = TableParts.narrowed

    def then_deleted(*arguments):
        found = narrowed(*arguments)
        monkeypatch.undo()
        changing.sql(f"DELETE FROM {RETURNS}")
        return found

    monkeypatch.setattr(TableParts, "narrowed", then_deleted)
    found = run(changing, CHAIN, tmp_path, **options)
    assert (found.rows, codes(found)) == (expected, {"s": "USED", "c": "USED"})
    assert rows_of(changing, CHAIN) == []


def test_the_checker_reads_a_followed_statement(facts, tmp_path, options):
    run(facts, CHAIN, tmp_path, **options)
    path = UPath(tmp_path / "descriptor.json")
    for table, column in ((SALES, "ticket"), (CLAIMS, "cart")):
        assert problems_of_descriptor(static_table(facts, table), column, path) == []
    found = descriptors.load(path)
    wrong = tuple(
        replace(each, values=each.values[1:]) if each.column == "day" else each
        for each in found.index_filters
    )
    descriptors.write(replace(found, index_filters=wrong), path)
    for table, column in ((SALES, "ticket"), (CLAIMS, "cart")):
        (problem, *_) = problems_of_descriptor(static_table(facts, table), column, path)
        assert "exclude" in problem
    unlisted = tuple(each for each in found.index_filters if each.column == "day")
    descriptors.write(replace(found, index_filters=unlisted), path)
    with pytest.raises(NotCheckedError, match="does not list the keys"):
        problems_of_descriptor(static_table(facts, SALES), "ticket", path)
