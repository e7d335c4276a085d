"""MERGE, UPDATE and DELETE by a column with a key index: on a branch, which becomes the table."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.spark.map_join import branch as branches
from airflow_hive_opt.spark.map_join.command import Command
from airflow_hive_opt.spark.map_join.group_filter import GROUP_FILTER
from tests.lakes.iceberg.changed_tables import (
    DAYS,
    MERGE,
    MODES,
    another_writer,
    at,
    branches_of,
    content,
    fresh,
    of,
    use_of,
    with_changed_rows,
)
from tests.lakes.iceberg.indexes import build_index
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import needs_jvm

pytestmark = needs_jvm
STATEMENTS = {
    "merge": MERGE,
    "merge without aliases": (
        "MERGE INTO {t} USING lake.kim.changed ON {n}.id = changed.id "
        "WHEN MATCHED THEN UPDATE SET v = changed.v"
    ),
    "merge from a query": (
        "MERGE INTO {t} t USING (SELECT id, max(v) AS v FROM lake.kim.changed GROUP BY id) c "
        "ON t.id = c.id AND c.v > 0 WHEN MATCHED THEN UPDATE SET v = c.v "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (c.id, c.v)"
    ),
    "delete": "DELETE FROM {t} WHERE id IN (SELECT id FROM lake.kim.changed)",
    "update": "UPDATE {t} SET v = -5 WHERE id IN (SELECT id FROM lake.kim.changed WHERE v > 0)",
    "update with an alias": (
        "UPDATE {t} AS t SET t.v = -5 WHERE EXISTS "
        "(SELECT 1 FROM lake.kim.changed c WHERE c.id = t.id)"
    ),
    "nothing matches": "DELETE FROM {t} WHERE id IN (SELECT id FROM lake.kim.changed WHERE v = 73)",
}


@pytest.fixture(scope="module")
def session(lake):
    yield from with_changed_rows(lake)


@pytest.fixture
def other_writer(session):
    return another_writer(session)


@pytest.fixture
def root(tmp_path):
    return UPath(tmp_path / "indexes")


@pytest.mark.parametrize("mode", MODES)
def test_changes_write_what_plain_spark_writes(session, tmp_path, root, mode):
    for sql in STATEMENTS.values():
        table = fresh(session, root, mode)
        session.sql(of("plain", sql))
        found = run(session, of("ours", sql), tmp_path, index_path=str(root))
        assert content(session, "ours") == content(session, "plain"), found.statement
        assert use_of(found).code == "USED"
        assert f"`{table.replace('.', '`.`')}`.`branch_hive_opt_" in found.statement
        assert branches_of(session) == []
        (planned,) = found.report.descriptor.planned_files
        assert planned.files < DAYS / 2 and planned.total_files == DAYS + 1
        if "v = 73" not in sql:  # where plain Spark commits although nothing changes
            made = "SELECT operation FROM lake.kim.{}.snapshots"
            assert rows_of(session, made.format("ours")) == rows_of(session, made.format("plain"))


MERGE_ALL = "MERGE INTO {t} t USING lake.kim.changed c ON t.id = c.id WHEN MATCHED THEN DELETE"
# Whether the condition is true for every row of the target with one of the keys.
MATCH_EVERY_KEY = {
    MERGE_ALL: True,
    "DELETE FROM {t} WHERE (id IN (SELECT id FROM lake.kim.changed))": True,
    "UPDATE {t} SET v = 5 WHERE id IN (SELECT id FROM lake.kim.changed)": True,
    "MERGE INTO {t} t USING lake.kim.changed c ON t.id = c.id AND t.v = 1 "
    "WHEN MATCHED THEN DELETE": False,
    "DELETE FROM {t} WHERE id IN (SELECT id FROM lake.kim.changed) AND v = 1": False,
    # Conditions that are no part of the key query.
    "DELETE FROM {t} t WHERE t.id IN (SELECT c.id FROM lake.kim.changed c WHERE c.v < t.v)": False,
    "DELETE FROM {t} WHERE id IN (SELECT id FROM lake.kim.changed c "
    "WHERE c.v > 70 + 0 * year(current_date()))": False,
}


@pytest.mark.parametrize("added", ["no file", "an indexed file", "a file"])
def test_spark_searches_for_files_unless_the_index_has_found_them(session, tmp_path, root, added):
    chosen = MATCH_EVERY_KEY if added == "no file" else [MERGE_ALL]
    for sql in chosen:
        table = fresh(session, root)
        for name in ("ours", "plain") if added != "no file" else ():
            day = "DATE'2024-01-05'"  # a file without keys, beside one with keys
            session.sql(f"INSERT INTO lake.kim.{name} VALUES (2, {day}, 2), (7000, {day}, 2)")
        if added == "an indexed file":
            build_index(session, root, table, "id")
        session.sql(of("plain", sql))
        found = run(session, of("ours", sql), tmp_path, index_path=str(root))
        assert use_of(found).code == "USED"
        assert content(session, "ours") == content(session, "plain")
        (planned,) = found.report.descriptor.planned_files
        if session.version >= "4" or sql.startswith("MERGE"):  # Spark 3.5 tells no reads of others
            read = found.files(table)
            scans = 2 if sql.startswith("UPDATE") else 1  # of the rows that change, and of others
            if MATCH_EVERY_KEY[sql] and added == "no file":
                assert read == scans * planned.files, found.statement
            else:
                assert read > scans * planned.files, found.statement
        assert rewritten(session, "ours") == rewritten(session, "plain")
        assert session.conf.get(GROUP_FILTER) == "true"


def test_the_text_after_the_one_on_the_branch_has_spark_search_again(
    session, other_writer, tmp_path, root, monkeypatch
):
    fresh(session, root)
    row = "VALUES (6000, DATE'2028-01-01', 0)"
    at(monkeypatch, "publish", lambda: other_writer.sql(f"INSERT INTO same.kim.ours {row}"))
    searches = []
    plan = Command.plan

    def noting(self):
        searches.append(("branch_hive_opt" in self.text, session.conf.get(GROUP_FILTER)))
        plan(self)

    monkeypatch.setattr(Command, "plan", noting)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    assert use_of(found).code == "NOT_PUBLISHED"
    assert searches == [(True, "false"), (False, "true")]


def rewritten(session, name: str) -> list[tuple]:
    """The files that each snapshot has removed and added."""
    kinds = ("summary['deleted-data-files']", "summary['added-data-files']")
    return rows_of(session, f"SELECT {', '.join(kinds)} FROM lake.kim.{name}.snapshots")


def test_files_behind_the_index_are_changed_too(session, tmp_path, root):
    fresh(session, root)
    for name in ("ours", "plain"):
        session.sql(f"INSERT INTO lake.kim.{name} VALUES (4, DATE'2029-01-01', 0), (34, NULL, 0)")
        session.sql(f"UPDATE lake.kim.{name} SET id = 6000 WHERE id = 17")
    session.sql(of("plain", MERGE))
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    assert content(session, "ours") == content(session, "plain")
    assert (use_of(found).code, use_of(found).unknown) == ("USED", 3)


@pytest.mark.parametrize("changes", [True, False])
def test_two_applications(session, tmp_path, root, changes):
    fresh(session, root)

    def between():
        for name in ("ours", "plain") if changes else ():
            session.sql(f"INSERT INTO lake.kim.{name} VALUES (4, DATE'2029-01-01', 0)")

    found = run_apart(session, of("ours", MERGE), tmp_path, between, index_path=str(root))
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert use_of(found).code == ("OTHER_SNAPSHOT" if changes else "USED")
    assert ("branch_hive_opt" in found.statement) is not changes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("when", ["create", "created", "publish"])
def test_a_writer_that_adds_a_key_in_another_partition_meanwhile(
    session, other_writer, tmp_path, root, monkeypatch, mode, when
):
    """The key is in no partition of the list: without the branch, it would be inserted again."""
    fresh(session, root, mode)
    row = "VALUES (6000, DATE'2028-01-01', 0), (4, DATE'2028-01-01', 0)"

    def write():
        other_writer.sql(f"INSERT INTO same.kim.ours {row}")

    at(monkeypatch, {"created": "create"}.get(when, when), write, when == "created")
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(f"INSERT INTO lake.kim.plain {row}")
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert use_of(found).code == ("NO_BRANCH" if when == "create" else "NOT_PUBLISHED")
    assert "branch_hive_opt" not in found.statement
    assert branches_of(session) == []


def test_a_writer_in_the_last_moment(session, other_writer, tmp_path, root, monkeypatch):
    """It commits between the look at the table and the commit that publishes the branch."""
    fresh(session, root)
    row = "VALUES (6000, DATE'2028-01-01', 0)"
    end = branches.Branch._end
    done = []

    def late(self, table):
        found = end(self, table)
        if not done:
            done.append(other_writer.sql(f"INSERT INTO same.kim.ours {row}"))
        return found

    monkeypatch.setattr(branches.Branch, "_end", late)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(f"INSERT INTO lake.kim.plain {row}")
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert (done != [], use_of(found).code) == (True, "NOT_PUBLISHED")


def test_a_commit_that_changes_no_rows_in_the_last_moment(
    session, other_writer, tmp_path, root, monkeypatch
):
    fresh(session, root)
    end = branches.Branch._end
    done = []

    def late(self, table):
        found = end(self, table)
        if not done:
            alter = "ALTER TABLE same.kim.ours SET TBLPROPERTIES ('note' = 'x')"
            done.append(other_writer.sql(alter))
        return found

    monkeypatch.setattr(branches.Branch, "_end", late)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert (use_of(found).code, branches_of(session)) == ("USED", [])


def test_a_branch_that_somebody_removes(session, other_writer, tmp_path, root, monkeypatch):
    """Iceberg makes it again when the statement commits, from the table's newer snapshot."""
    fresh(session, root)
    row = "VALUES (6000, DATE'2028-01-01', 0)"

    def remove():
        (name,) = (row[0] for row in branches_of(session))
        other_writer.sql(f"INSERT INTO same.kim.ours {row}")
        other_writer.sql(f"ALTER TABLE same.kim.ours DROP BRANCH {name}")

    at(monkeypatch, "create", remove, after=True)
    run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(f"INSERT INTO lake.kim.plain {row}")
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert branches_of(session) == []


def test_a_branch_that_somebody_removes_before_another_change_is_undone(
    session, other_writer, tmp_path, root, monkeypatch
):
    """The branch that Iceberg makes again has the change, and the table is where it was."""
    fresh(session, root)
    (start,) = session.sql("SELECT snapshot_id FROM lake.kim.ours.snapshots").head()

    def remove():
        (name,) = (row[0] for row in branches_of(session))
        other_writer.sql("INSERT INTO same.kim.ours VALUES (6000, DATE'2028-01-01', 0)")
        other_writer.sql(f"ALTER TABLE same.kim.ours DROP BRANCH {name}")

    def undo():
        other_writer.sql(f"CALL same.system.rollback_to_snapshot('kim.ours', {start})")

    at(monkeypatch, "create", remove, after=True)
    at(monkeypatch, "publish", undo)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    history = "SELECT count(*) FROM lake.kim.ours.history WHERE NOT is_current_ancestor"
    assert session.sql(history).head()[0] > 0  # the change, which was undone
    assert use_of(found).code == "NOT_PUBLISHED"
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert branches_of(session) == []


def test_a_source_that_changes_meanwhile(session, tmp_path, root, monkeypatch):
    """A key that was not looked up: the statement fails on the branch, and runs without keys."""
    fresh(session, root)
    more = "INSERT INTO lake.kim.changed VALUES (18, 99)"
    at(monkeypatch, "create", lambda: session.sql(more))
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(of("plain", MERGE))
    session.sql("DELETE FROM lake.kim.changed WHERE id = 18")
    assert content(session, "ours") == content(session, "plain")
    assert found.statement == of("ours", MERGE)
    assert branches_of(session) == []


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (
            "DELETE FROM {t} WHERE id IN (SELECT id FROM lake.kim.changed) "
            "AND v >= (SELECT min(v) FROM {t})",
            "can't be held",
        ),
        ("UPDATE {t} SET v = 0 WHERE id IN (SELECT id FROM wap)", "write.wap.enabled"),
    ],
)
def test_statements_that_run_on_no_branch(session, tmp_path, root, sql, why):
    fresh(session, root)
    if "wap" in sql:
        sql = sql.replace("FROM wap", "FROM lake.kim.changed")
        for name in ("ours", "plain"):
            enabled = "SET TBLPROPERTIES ('write.wap.enabled' = 'true')"
            session.sql(f"ALTER TABLE lake.kim.{name} {enabled}")
    found = run(session, of("ours", sql), tmp_path, index_path=str(root))
    session.sql(of("plain", sql))
    assert content(session, "ours") == content(session, "plain")
    uses = found.report.descriptor.index_uses
    assert {(use.code, why in use.why) for use in uses} == {("NO_FIXED_SNAPSHOT", True)}
    assert "branch_hive_opt" not in found.statement


def test_many_keys_of_a_merge_are_one_literal(session, tmp_path, root, monkeypatch):
    """A list of them takes Spark seconds. A key that it does not have still stops the MERGE."""
    monkeypatch.setattr("airflow_hive_opt.spark.local_task.value_lists._SHORT", 1)
    fresh(session, root)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert use_of(found).code == "USED"
    assert "split('4,34,300,6000', ',')" in found.statement
    fresh(session, root)
    more = "INSERT INTO lake.kim.changed VALUES (18, 99)"
    at(monkeypatch, "create", lambda: session.sql(more))
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(of("plain", MERGE))
    session.sql("DELETE FROM lake.kim.changed WHERE id = 18")
    assert content(session, "ours") == content(session, "plain")
    assert found.statement == of("ours", MERGE)


def test_too_many_keys_for_a_list_leave_the_index_unused(session, tmp_path, root, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.spark.local_task.indexed_files.MOST_LISTED", 2)
    fresh(session, root)
    found = run(session, of("ours", MERGE), tmp_path, index_path=str(root))
    session.sql(of("plain", MERGE))
    assert content(session, "ours") == content(session, "plain")
    assert use_of(found).code == "KEYS_NOT_LISTED"


class Failing:
    """A table of the JVM whose commits of branches fail: before they are done, or after."""

    def __init__(self, table, faults) -> None:
        self._table = table
        self._faults = faults

    def __getattr__(self, name):
        found = getattr(self._table, name)
        if name not in ("manageSnapshots", "refresh"):
            return found
        if name == "refresh":
            return lambda: self._faults.meet("refresh", found)
        return lambda: _Chain(found(), self._faults)


class _Chain:
    def __init__(self, java, faults) -> None:
        self._java = java
        self._faults = faults

    def __getattr__(self, name):
        method = getattr(self._java, name)
        if name == "commit":
            return lambda: self._faults.meet("commit", method)
        return lambda *args: _Chain(method(*args), self._faults)


class Faults:
    """Fails at the call of this number, once or from then on; counts the calls."""

    def __init__(self, number: int, after: bool, error, lasts: bool) -> None:
        self.calls = 0
        self._number, self._after, self._error, self._lasts = number, after, error, lasts

    def meet(self, name, call):
        at = self.calls
        self.calls += 1
        if at == self._number or (self._lasts and at > self._number):
            if self._after:
                call()
            raise self._error()
        return call()


def error_of(session, name: str):
    from py4j.protocol import Py4JJavaError

    exceptions = session._jvm.org.apache.iceberg.exceptions
    made = {
        "rejected": lambda: exceptions.CommitFailedException("it was rejected", []),
        "unknown": lambda: exceptions.CommitStateUnknownException(
            session._jvm.java.lang.RuntimeException("the answer was lost")
        ),
    }
    return lambda: Py4JJavaError("the catalog failed", made[name]())


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(
    ("kind", "after"), [("rejected", False), ("unknown", False), ("unknown", True)]
)
def test_a_failure_at_each_call_leaves_the_table_as_before_or_as_plain(
    session, tmp_path, root, monkeypatch, kind, after, lasts
):
    loaded = branches.Branch._loaded
    number, met = 0, True
    while met:
        fresh(session, root)
        before = content(session, "ours")
        session.sql(of("plain", MERGE))
        faults = Faults(number, after, error_of(session, kind), lasts)

        def failing(self, faults=faults):
            from airflow_hive_opt.spark.catalog.lakes.loading import load
            from airflow_hive_opt.spark.catalog.lakes.place import Place

            table = Failing(load(self._session, Place.of(self.table)).table(), faults)
            table.refresh()
            return table

        monkeypatch.setattr(branches, "_PAUSE", 0)
        monkeypatch.setattr(branches.Branch, "_loaded", failing)
        try:
            run(session, of("ours", MERGE), tmp_path, index_path=str(root))
            expected = [content(session, "plain")]
        except (Py4JError, PySparkException):
            expected = [before, content(session, "plain")]
        monkeypatch.setattr(branches.Branch, "_loaded", loaded)
        session.catalog.refreshTable("lake.kim.ours")
        assert content(session, "ours") in expected, (number, kind)
        assert all(age is not None for _, age in branches_of(session)), (number, kind)
        met = faults.calls > number
        number += 1
    assert number >= 5
