"""Keys of a part of one large table ask the key index of the next: the rows are Spark's own."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.documents.index_trial import IndexTrial, TrialArm
from airflow_hive_opt.documents.report import decision_lines, headline
from airflow_hive_opt.provider.earlier_runs import skipped_keys_in
from airflow_hive_opt.spark.local_task import narrowed_tables
from airflow_hive_opt.spark.local_task.engine import SparkEngine
from airflow_hive_opt.statement.budget import OverBudget, check_budget
from tests.lakes.iceberg.facts import (
    CLAIMS,
    DAYS,
    JOIN,
    LARGE,
    NARROWED,
    RETURNS,
    SALES,
    SPACE,
    create_facts,
    drop_facts,
)
from tests.lakes.runs import rows_of, run
from tests.lakes.session import needs_jvm

pytestmark = needs_jvm
SOLD, BACK = f"{SALES} s", f"{RETURNS} r"
WITH_DAYS = f"JOIN {SPACE}.days d ON r.day = d.day"
CLAIMED = (
    f"SELECT s.ticket, c.v FROM {SOLD} JOIN {CLAIMS} c ON s.cart = c.cart "
    f"JOIN {SPACE}.days d ON c.day = d.day WHERE d.week < 10"
)
CHAIN = f"SELECT s.ticket, c.v, r.v {NARROWED} JOIN {CLAIMS} c ON c.cart = s.cart WHERE d.week = 3"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return UPath(tmp_path_factory.mktemp("hops") / "indexes")


@pytest.fixture(scope="module")
def facts(lake, root):
    create_facts(lake, root)
    yield lake
    drop_facts(lake)


@pytest.fixture
def hop(facts, tmp_path, root):
    """Runs a statement with the indexes, and checks its rows."""

    def ran(sql: str, **options):
        found = run(facts, sql, tmp_path, settings=LARGE, index_path=str(root), **options)
        assert found.rows == rows_of(facts, sql)
        return found

    return ran


@pytest.fixture
def queried(monkeypatch):
    """The narrowed tables whose keys were read, by their aliases."""
    asked = []
    collect = SparkEngine.collect

    def noted(engine, source, names):
        asked.extend(
            ["+".join(each.scan.alias for each in source.narrowed)] * bool(source.narrowed)
        )
        return collect(engine, source, names)

    monkeypatch.setattr(SparkEngine, "collect", noted)
    return asked


def uses_of(found) -> list:
    return [use for use in found.report.descriptor.index_uses if use.hop is not None]


def hops_of(found) -> dict[str, tuple]:
    """The code of each hop, and the files that it leaves, by its scan."""
    return {use.scan.alias: (str(use.code), use.hop.files) for use in uses_of(found)}


def used(found) -> dict[str, int]:
    """The files that each hop leaves which was used, by its scan."""
    return {alias: files for alias, (code, files) in hops_of(found).items() if code == "USED"}


def reads(found, *tables) -> tuple:
    return tuple(map(found.files, tables))


def test_keys_of_a_narrowed_table_ask_the_index_of_the_next(facts, hop, tmp_path):
    found = hop(JOIN)
    keys = "60, 64, 68, 72, 76"
    assert found.rows == rows_of(facts, f"{JOIN} AND s.ticket IN ({keys}) AND r.ticket IN ({keys})")
    assert used(found) == {"s": 5}
    assert reads(found, SALES, RETURNS) == (5, 2)
    assert found.statement.count("VERSION AS OF") == 2
    (use,) = (use for use in uses_of(found) if use.code == "USED")
    assert (use.files, use.unknown, use.total_files) == (5, 0, DAYS)
    assert (use.hop.keys, use.hop.files_without, use.hop.source) == (5, DAYS, "returns")
    without = run(facts, JOIN, tmp_path, settings=LARGE)
    assert (without.rows, reads(without, SALES, RETURNS)) == (found.rows, (DAYS, 2))


SAME = "s.ticket = r.ticket"
SELECT = "SELECT s.ticket, s.v, r.v"


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        # the tables in another order
        (
            f"{SELECT} FROM {SPACE}.days d JOIN {BACK} ON r.day = d.day JOIN {SOLD} ON {SAME} "
            "WHERE d.week = 3",
            {"s": 5},
        ),
        (
            f"{SELECT} FROM {RETURNS} r, {SALES} s, {SPACE}.days d "
            f"WHERE r.day = d.day AND {SAME} AND d.week = 3 AND s.v < 5",
            {"s": 5},
        ),
        # the other way: sales of two days
        (
            f"{SELECT} FROM {SOLD} JOIN {BACK} ON {SAME} JOIN {SPACE}.days d ON s.day = d.day "
            "WHERE d.week = 2",
            {"r": 10},
        ),
        # nothing is left: no ticket of these days has come back
        (
            f"{SELECT} FROM {SOLD} JOIN {BACK} ON {SAME} JOIN {SPACE}.days d ON s.day = d.day "
            "WHERE d.week = 3",
            {"r": 0, "s": 0},
        ),
        # no keys at all
        (f"{SELECT} {NARROWED} WHERE d.week = 99", {"s": 0}),
        (f"SELECT count(*), max(s.v) {NARROWED} WHERE d.week = 99", {"s": 0}),
        # a condition on the part itself leaves fewer keys
        (f"{SELECT} {NARROWED} WHERE d.week = 3 AND r.ticket > 70", {"s": 2}),
        (
            f"{SELECT} {NARROWED} JOIN {SPACE}.shops h ON h.v = r.v WHERE d.week = 3 "
            "AND h.name = 'shop 2'",  # a small table is not a part of the key query
            {"s": 5},
        ),
        # the same table twice
        (
            f"SELECT a.v, b.v FROM {SALES} a JOIN {SALES} b ON a.ticket = b.ticket "
            f"JOIN {SPACE}.days d ON a.day = d.day WHERE d.week = 3",
            {"b": 2},
        ),
        (
            f"SELECT a.v, b.v FROM {SALES} a JOIN {SALES} b ON a.cart = b.cart "
            f"JOIN {SPACE}.days d ON a.day = d.day WHERE d.week = 3",
            {"b": 2},
        ),
        # three large tables in a row
        (CHAIN, {"s": 5, "c": 5}),
        # the sides that outer joins do not preserve
        (
            f"{SELECT} FROM {BACK} {WITH_DAYS} LEFT JOIN {SOLD} ON {SAME} AND s.v > 1 "
            "WHERE d.week = 3",
            {"s": 5},
        ),
        (
            f"{SELECT} FROM {SOLD} RIGHT JOIN {BACK} ON {SAME} {WITH_DAYS} WHERE d.week = 3",
            {"s": 5},
        ),
        (
            f"SELECT r.v FROM {BACK} {WITH_DAYS} LEFT ANTI JOIN {SOLD} ON {SAME} AND s.v > 4 "
            "WHERE d.week = 3",
            {"s": 5},
        ),
        (
            f"SELECT s.v FROM {SOLD} LEFT SEMI JOIN {BACK} ON {SAME} "
            f"AND r.day IN (DATE'2024-01-07')",
            {},
        ),
        # preserved sides are never narrowed
        (
            f"{SELECT} FROM {SOLD} LEFT JOIN {BACK} ON {SAME} "
            f"LEFT JOIN {SPACE}.days d ON r.day = d.day AND d.week = 3",
            {},
        ),
        (
            f"{SELECT} FROM {SOLD} FULL JOIN {BACK} ON {SAME} "
            f"LEFT JOIN {SPACE}.days d ON r.day = d.day AND d.week = 3",
            {},
        ),
        (
            f"SELECT s.v, x.v FROM {SOLD} LEFT JOIN (SELECT r.* FROM {BACK} {WITH_DAYS} "
            "WHERE d.week = 3) x ON s.ticket = x.ticket",
            {},
        ),
        # other comparisons
        (
            f"SELECT s.v, r.v FROM {SOLD} JOIN {BACK} ON s.ticket <=> r.ticket {WITH_DAYS} "
            "WHERE d.week = 3",
            {},
        ),
        (
            f"SELECT count(*) FROM {SOLD} JOIN {BACK} ON s.ticket < r.ticket {WITH_DAYS} "
            "WHERE d.week = 3",
            {},
        ),
        # a condition that may change is not a part of the key query
        (f"{SELECT} {NARROWED} WHERE d.week = 3 AND r.v + rand() >= 0", {"s": 5}),
        # subqueries, CTEs and UNION
        (
            f"SELECT x.v, r.v FROM (SELECT ticket, v FROM {SALES} WHERE v > 1) x "
            f"JOIN {BACK} ON x.ticket = r.ticket {WITH_DAYS} WHERE d.week = 3",
            {"sales": 5},
        ),
        (
            f"WITH x AS ({SELECT} {NARROWED} WHERE d.week = 3) "
            "SELECT a.ticket, b.ticket FROM x a JOIN x b ON a.ticket = b.ticket",
            {"s": 5},
        ),
        (
            f"{SELECT} {NARROWED} WHERE d.week = 3 UNION ALL {SELECT} FROM {SOLD} "
            f"JOIN {BACK} ON {SAME}",
            {"s": 5},
        ),
        (
            f"SELECT s.v FROM {SOLD} WHERE s.ticket IN (SELECT r.ticket FROM {BACK} "
            f"{WITH_DAYS} WHERE d.week = 3)",
            {},
        ),
    ],
)
def test_statements_have_plain_sparks_rows(hop, sql, left):
    found = hop(sql)
    assert used(found) == left


def test_rows_of_one_ticket_may_be_in_several_files_and_have_no_ticket(facts, hop):
    """NULL equals nothing, and several rows of a ticket are one key."""
    sql = f"SELECT r.ticket, s.ticket FROM {BACK} {WITH_DAYS} JOIN {SOLD} ON {SAME}"
    assert rows_of(facts, f"SELECT * FROM {RETURNS} WHERE ticket IS NULL")
    found = hop(f"{sql} WHERE d.week = 4")
    (use,) = (use for use in uses_of(found) if use.code == "USED")
    assert use.hop.keys == 5
    assert len(found.rows) > len(set(found.rows)) == 5


def test_a_chain_reads_both_tables_before_it(hop, queried):
    found = hop(CHAIN)
    assert (queried, reads(found, SALES, RETURNS, CLAIMS)) == (["r", "s+r"], (5, 2, 5))
    uses = {use.scan.alias: use for use in uses_of(found) if use.code == "USED"}
    assert [each.table for each in uses["c"].hop.tables] == [SALES, RETURNS]
    assert found.statement.count("VERSION AS OF") == 3


def test_the_number_of_hops_in_a_row_has_a_limit(hop, monkeypatch):
    monkeypatch.setattr(narrowed_tables, "MOST_HOPS", 1)
    assert used(hop(CHAIN)) == {"s": 5}


def test_several_tables_may_give_keys_for_one_scan(hop):
    sql = (
        f"{SELECT} {NARROWED} JOIN {CLAIMS} c ON c.cart = s.cart "
        f"JOIN {SPACE}.days e ON c.day = e.day WHERE d.week < 4 AND e.week < 4"
    )
    found = hop(sql)
    uses = {use.column: use for use in uses_of(found) if use.scan.alias == "s"}
    assert {use.code for use in uses.values()} == {"USED"}
    names = {column: use.hop.source for column, use in uses.items()}
    assert names == {"ticket": "returns", "cart": "claims"}
    assert found.files(SALES) < DAYS / 2
    twice = (
        f"SELECT s.v FROM {SOLD} JOIN {BACK} ON {SAME} JOIN {RETURNS} q "
        f"ON s.ticket = q.ticket {WITH_DAYS} JOIN {SPACE}.days e ON q.day = e.day "
        "WHERE d.week = 3 AND e.week IN (3, 4)"
    )
    assert used(hop(twice)) == {"s": 5}


def test_a_part_that_costs_more_than_it_may_save_is_not_asked(hop, queried):
    found = hop(f"{SELECT} {NARROWED} WHERE d.week < 15")
    assert (hops_of(found), queried) == ({"s": ("COSTS_MORE", None)}, [])
    assert reads(found, SALES, RETURNS) == (DAYS, 30)


def after(hop, sql, found, **options):
    """The next run of the same task."""
    return hop(sql, skipped_keys=skipped_keys_in(found.report.summary()), **options)


def test_a_hop_without_gain_is_left_out_of_the_next_runs(hop, queried):
    found = hop(CLAIMED)
    assert (hops_of(found), queried) == ({"s": ("MOST_FILES_HOLD_KEYS", None)}, ["c"])
    again = after(hop, CLAIMED, found)
    assert (hops_of(again), queried) == ({"s": ("NOT_ASKED_AGAIN", None)}, ["c"])
    assert again.reasons["c"] == "RESTRICTED"
    assert reads(again, SALES, CLAIMS) == (DAYS, 20)
    (use,) = uses_of(again)
    assert use.skipped_keys.runs == 1
    for _ in range(8):
        again = after(hop, CLAIMED, again)
    assert (uses_of(again)[0].skipped_keys.runs, queried) == (9, ["c"])
    after(hop, CLAIMED, again)
    assert queried == ["c", "c"]


def test_a_run_that_compares_leaves_the_indexes_out(hop, queried):
    def trial_of(found):
        return found.report.summary()["index_trial"]

    first = trial_of(hop(JOIN))
    assert (first["used"] > 0, first["left_out"]) == (True, None)
    found = hop(JOIN, index_trial=IndexTrial(**first, tries=TrialArm.LEFT_OUT))
    assert (uses_of(found), reads(found, SALES, RETURNS), queried) == ([], (DAYS, 2), ["r"])
    second = trial_of(found)
    assert (second["used"], second["left_out"] > 0) == (first["used"], True)
    long = 1.5 * second["left_out"]
    slower = {**second, "used": long}
    found = hop(JOIN, index_trial=IndexTrial(**slower))
    assert (uses_of(found), trial_of(found)["used"]) == ([], long)
    found = hop(JOIN, index_trial=IndexTrial(**slower, tries=TrialArm.USED))
    assert (used(found), trial_of(found)["used"] != long) == ({"s": 5}, True)


def test_a_run_that_compares_leaves_the_statement_to_spark(hop, queried):
    first = hop(JOIN).report.summary()["index_trial"]
    assert (first["may_be_untouched"], first["untouched"], queried) == (True, None, ["r"])
    found = hop(JOIN, index_trial=IndexTrial(**first, tries=TrialArm.UNTOUCHED))
    assert [each.reason for each in found.report.descriptor.decisions] == ["LEFT_TO_SPARK"]
    assert (reads(found, SALES, RETURNS), queried) == ((DAYS, DAYS), ["r"])
    compared = found.report.summary()["index_trial"]
    assert compared["untouched"] > 0
    assert {**compared, "untouched": None} == first
    quickest = hop(JOIN, index_trial=IndexTrial(**{**compared, "untouched": 0.001}))
    assert quickest.report.summary()["index_trial"]["untouched"] > 0.001
    assert (uses_of(quickest), queried) == ([], ["r"])


def test_too_many_keys_are_not_read_again(hop, queried):
    found = hop(JOIN, max_keys=4)
    assert hops_of(found) == {"s": ("KEYS_NOT_LISTED", None)}
    assert "max_keys" in uses_of(found)[0].why
    again = after(hop, JOIN, found, max_keys=4)
    assert hops_of(again) == {"s": ("NOT_ASKED_AGAIN", None)}
    assert (queried, reads(again, SALES, RETURNS)) == (["r"], (DAYS, 2))


def test_a_hop_that_is_of_no_use_leaves_the_tables_own_keys_as_they_are(hop):
    """Its digest is another one than that of the scan's own keys."""
    own = f"s.day IN (SELECT e.day FROM {SPACE}.days e WHERE e.week < 19)"
    sql = f"{CLAIMED.replace('d.week < 10', 'd.week < 9')} AND {own}"
    found = hop(sql, max_keys=50)
    assert hops_of(found) == {"s": ("KEYS_NOT_LISTED", None)}
    again = after(hop, sql, found, max_keys=50)
    assert hops_of(again) == {"s": ("NOT_ASKED_AGAIN", None)}
    assert found.reasons == again.reasons == {"s": "RESTRICTED", "c": "RESTRICTED"}
    assert reads(again, SALES, CLAIMS) == reads(found, SALES, CLAIMS) == (38, 18)


def test_a_key_query_that_fails_is_tried_again(hop, monkeypatch):
    collect = SparkEngine.collect

    def fails(engine, source, names):
        if source.narrowed:
            raise ValueError("a test")
        return collect(engine, source, names)

    monkeypatch.setattr(SparkEngine, "collect", fails)
    found = hop(JOIN)
    assert hops_of(found) == {"s": ("KEYS_NOT_READ", None)}
    assert reads(found, SALES, RETURNS) == (DAYS, 2)
    monkeypatch.undo()
    assert used(after(hop, JOIN, found)) == {"s": 5}


def test_a_scan_with_an_index_of_its_own_keys_is_not_asked_by_a_hop(hop, queried):
    sql = f"{JOIN} AND s.cart IN (SELECT v FROM {SPACE}.shops)"
    found = hop(sql)
    codes = [
        (use.scan.alias, use.code, use.hop is None) for use in found.report.descriptor.index_uses
    ]
    assert (codes[0], queried) == (("s", "USED", True), [])


@pytest.mark.parametrize("error", [OverBudget("a test"), RecursionError()])
def test_the_planning_of_hops_belongs_to_the_budget(hop, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(narrowed_tables, "hops", fails)
    found = hop(JOIN)
    assert (hops_of(found), reads(found, SALES, RETURNS)) == ({}, (DAYS, 2))


def test_the_planning_of_hops_is_counted(hop, monkeypatch):
    def used_up(*arguments):
        with_budget = narrowed_tables.Budget.check
        monkeypatch.setattr(narrowed_tables.Budget, "check", over)
        check_budget()
        monkeypatch.setattr(narrowed_tables.Budget, "check", with_budget)
        return ()

    def over(_):
        raise OverBudget("a test")

    monkeypatch.setattr(narrowed_tables, "hops", used_up)
    assert hops_of(hop(JOIN)) == {}


def test_the_headline_and_the_text_of_the_descriptor_name_the_keys(hop):
    found = hop(JOIN)
    said = headline(found.report.descriptor)
    by = "5 of 40 files of sales by the key index of ticket with 5 keys of returns"
    assert by in said
    assert "reads all partitions" not in said
    text = descriptor_to_text(found.report.descriptor)
    assert "key index of s.ticket by 5 keys of returns: USED: 5 of 40 files" in text
    summary = found.report.summary()
    (line,) = (each for each in decision_lines(summary["decisions"]) if each.startswith("s "))
    assert "5 of 40 files" in line
    (decision,) = (each for each in summary["decisions"] if each["scan"] == "s")
    (use,) = decision["indexes"]
    assert (use["code"], use["hop"]["keys"], use["hop"]["files"]) == ("USED", 5, 5)
    assert "sql" not in use["hop"]
