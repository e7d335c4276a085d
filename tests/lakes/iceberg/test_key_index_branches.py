"""The branch on which a statement by a key index runs: what stops it, and what it leaves behind."""

from __future__ import annotations

from functools import partial

import pytest
from py4j.protocol import Py4JJavaError
from upath import UPath

from airflow_hive_opt.documents.gates import GateClosed
from airflow_hive_opt.provider.earlier_runs import skipped_indexes_in
from airflow_hive_opt.spark.map_join import branch as branches
from airflow_hive_opt.spark.map_join import execution
from tests.lakes.iceberg.changed_tables import (
    DAYS,
    MERGE,
    another_writer,
    at,
    branches_of,
    content,
    fresh,
    of,
    use_of,
    with_changed_rows,
)
from tests.lakes.runs import rows_of, run
from tests.lakes.session import needs_jvm

pytestmark = needs_jvm
REPLACE = (
    "CREATE OR REPLACE TABLE {} (id bigint, day date, v bigint) USING iceberg PARTITIONED BY (day)"
)
ROW = "VALUES (6000, DATE'2028-01-01', 0)"


@pytest.fixture(scope="module")
def session(lake):
    yield from with_changed_rows(lake)


@pytest.fixture
def other_writer(session):
    return another_writer(session)


@pytest.fixture
def root(tmp_path):
    return UPath(tmp_path / "indexes")


@pytest.mark.parametrize("when", ["create", "created", "publish"])
def test_a_writer_that_replaces_the_table_meanwhile(
    session, other_writer, tmp_path, root, monkeypatch, when
):
    """The table then has no snapshot until it is written to."""
    fresh(session, root)
    act = partial(other_writer.sql, REPLACE.format("same.kim.ours"))
    at(monkeypatch, {"created": "create"}.get(when, when), act, when == "created")
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(REPLACE.format("lake.kim.plain"))
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert len(content(session, "ours")) == 5
    assert branches_of(session) == []
    if found.report.descriptor.index_uses:  # else the user's own text ran
        use = use_of(found)
        assert use.code == ("NO_BRANCH" if when == "create" else "NOT_PUBLISHED")
        assert "another writer" in use.why


def test_a_table_that_can_not_be_read_once_is_published_all_the_same(
    session, tmp_path, root, monkeypatch
):
    fresh(session, root)
    error = session._jvm.java.io.UncheckedIOException
    io = session._jvm.java.io.IOException("the store does not answer")
    loaded, failed = branches.Branch._loaded, []

    def failing(self):
        if self._exists and not failed:
            failed.append(True)
            raise Py4JJavaError("the store does not answer", error(io))
        return loaded(self)

    monkeypatch.setattr(branches, "_PAUSE", 0)
    monkeypatch.setattr(branches.Branch, "_loaded", failing)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(of("plain", MERGE))
    assert (failed, use_of(found).code) == ([True], "USED")
    assert content(session, "ours") == content(session, "plain")
    assert branches_of(session) == []


@pytest.mark.parametrize("limit", [{"max_partitions": 9}, {"max_bytes": 20_000}])
def test_gates_also_hold_for_the_statement_without_its_index(
    session, other_writer, tmp_path, root, monkeypatch, limit
):
    fresh(session, root)
    before = content(session, "ours")
    assert use_of(run(session, of("ours", MERGE), tmp_path, index_path=str(root), **limit))
    fresh(session, root)
    row = f"INSERT INTO same.kim.ours {ROW}"
    at(monkeypatch, "publish", lambda: other_writer.sql(row))
    with pytest.raises(GateClosed, match=next(iter(limit))):
        run(session, of("ours", MERGE), tmp_path, index_path=str(root), **limit)
    session.sql(f"INSERT INTO lake.kim.plain {ROW}")
    assert content(session, "ours") == content(session, "plain") != before
    assert branches_of(session) == []


def test_gates_that_are_open_for_all_files_do_not_stop_the_statement_without_its_index(
    session, other_writer, tmp_path, root, monkeypatch
):
    fresh(session, root)
    at(monkeypatch, "create", lambda: other_writer.sql(f"INSERT INTO same.kim.ours {ROW}"))
    options = {"index_path": str(root), "max_partitions": DAYS + 5}
    found = run(session, of("ours", MERGE), tmp_path, **options)
    session.sql(f"INSERT INTO lake.kim.plain {ROW}")
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert use_of(found).code == "NO_BRANCH"


def test_a_statement_that_had_to_run_twice_leaves_the_index_out_for_nine_runs(
    session, other_writer, tmp_path, root, monkeypatch
):
    fresh(session, root)
    at(monkeypatch, "publish", lambda: other_writer.sql(f"INSERT INTO same.kim.ours {ROW}"))
    options = {"index_path": str(root)}
    found = run(session, of("ours", MERGE), tmp_path, **options)
    codes = [use_of(found).code]
    for _ in range(10):
        skipped = skipped_indexes_in(found.report.summary())
        sql = MERGE if len(codes) == 1 else MERGE.replace("id = c.id", "id = c.id AND c.v = 73")
        found = run(session, of("ours", sql), tmp_path, skipped_indexes=skipped, **options)
        codes.append(use_of(found).code)
        assert "branch_hive_opt" not in found.statement or codes[-1] == "USED"
    assert codes == ["NOT_PUBLISHED", *9 * ["NOT_TRIED_AGAIN"], "USED"]
    select = "SELECT t.v FROM lake.kim.ours t JOIN lake.kim.changed c ON t.id = c.id"
    found = run(session, select, tmp_path, skipped_indexes={"lake.kim.ours": 0}, **options)
    assert use_of(found).code == "USED"


def refused(session, monkeypatch, text_has: str):
    """The catalog refuses to plan texts with some name, by an error that is not Spark's."""
    planned = {"_command": execution._command, "_query": execution._query}
    error = session._jvm.java.lang.SecurityException("no such right")

    def refusing(plan, session_, text, *others):
        if text_has in text:
            raise Py4JJavaError("the catalog refuses", error)
        return plan(session_, text, *others)

    for name, plan in planned.items():
        monkeypatch.setattr(execution, name, partial(refusing, plan))


def test_a_catalog_that_refuses_the_name_of_the_branch(session, tmp_path, root, monkeypatch):
    fresh(session, root)
    refused(session, monkeypatch, "branch_hive_opt_")
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert (use_of(found).code, "no such right" in use_of(found).why) == ("NO_BRANCH", True)
    assert branches_of(session) == []


def test_a_catalog_that_refuses_a_snapshot(session, tmp_path, root, monkeypatch):
    table = fresh(session, root)
    refused(session, monkeypatch, "VERSION AS OF")
    sql = f"SELECT t.id, t.v FROM {table} t JOIN lake.kim.changed c ON t.id = c.id"
    found = run(session, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(session, sql), "NO_FIXED_SNAPSHOT")


def test_the_name_of_a_branch_says_which_run_has_made_it(session, root):
    """Spark can name it, and Iceberg can make it."""
    path = "s3://bucket/shop/manual__2026-11-26-3f/merge/-1/2.json"
    table = fresh(session, root)
    (snapshot,) = rows_of(session, f"SELECT snapshot_id FROM {table}.snapshots")
    branch = branches.Branch(session, table, snapshot[0], path)
    branch.create()
    assert branch.name.endswith("_shop_manual_2026_11_26_3f_merge_1_2")
    session.sql(f"INSERT INTO {branch.full_name} {ROW}")
    assert len(rows_of(session, f"SELECT * FROM {branch.full_name}")) == 242
    branch.remove()
    assert branches_of(session) == []


def test_the_next_run_removes_old_branches_of_killed_runs(session, tmp_path, root, monkeypatch):
    table = fresh(session, root)
    for name, age in (("hive_opt_old", 1), ("hive_opt_young", 3_600_000), ("others", 1)):
        session.sql(f"ALTER TABLE {table} CREATE BRANCH {name} RETAIN {age // 60_000 + 1} MINUTES")
    now = branches.time.time
    monkeypatch.setattr(branches.time, "time", lambda: now() + 600)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    assert use_of(found).code == "USED"
    assert {name for name, _ in branches_of(session)} == {"hive_opt_young", "others"}
