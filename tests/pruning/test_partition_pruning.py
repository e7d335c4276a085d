"""Which scans are pruned, by which key queries, and why others are not."""

import pytest

from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import Settings
from tests.pruning.catalogs import STAR


def reasons(sql: str, **conf) -> dict[str, str]:
    found = plan(sql, STAR, Settings.of(conf)).decisions
    return {decision.scan.alias: decision.reason.value for decision in found}


def sources(sql: str, alias: str = "s") -> list[str]:
    (decision,) = [found for found in plan(sql, STAR).decisions if found.scan.alias == alias]
    return [source.sql for source in decision.sources]


DAYS = "SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE "


@pytest.mark.parametrize(
    ("joined", "reason"),
    [
        # 4.1: the big table on the inner side
        ("JOIN days d ON s.ds = d.ds", "PRUNED"),
        ("JOIN days d ON d.ds = s.ds", "PRUNED"),
        (", days d WHERE s.ds = d.ds", "PRUNED"),
        ("CROSS JOIN days d WHERE s.ds = d.ds", "PRUNED"),
        ("RIGHT JOIN days d ON s.ds = d.ds", "PRUNED"),
        ("LEFT SEMI JOIN days d ON s.ds = d.ds", "PRUNED"),
        ("LEFT JOIN days d ON s.ds = d.ds", "PRESERVED_SIDE"),
        ("FULL JOIN days d ON s.ds = d.ds", "PRESERVED_SIDE"),
        ("LEFT ANTI JOIN days d ON s.ds = d.ds", "PRESERVED_SIDE"),
        ("LEFT JOIN days d ON true WHERE s.ds = d.ds", "PRUNED"),
        ("FULL JOIN days d ON true WHERE s.ds = d.ds", "PRUNED"),
        # 4.2, 4.3: functions on either key go by the skeleton
        ("JOIN days d ON substr(s.ds, 1) = d.ds", "PRUNED"),
        ("JOIN days d ON CAST(s.ds AS int) = d.year", "PRUNED"),
        ("JOIN days d ON s.ds = concat(d.ds, '')", "PRUNED"),
        ("JOIN days d ON my_function(s.ds) = d.ds", "CONDITION_NOT_DETERMINISTIC"),
        ("JOIN days d ON concat(s.ds, rand()) = d.ds", "CONDITION_NOT_DETERMINISTIC"),
        ("JOIN days d ON s.ds = d.ds || ?", "CONDITION_NOT_SELF_CONTAINED"),
        # 4.4: a partition column
        ("JOIN items i ON s.item = i.item", "NO_CONDITION_ON_PARTITION_COLUMN"),
        ("", "NO_CONDITION_ON_PARTITION_COLUMN"),
        ("JOIN items i ON s.item = i.item WHERE s.ds = '1'", "PRUNED"),
        # any comparison that reads nothing else of the table
        ("JOIN days d ON s.ds >= d.ds", "PRUNED"),
        ("JOIN days d ON s.ds <=> d.ds", "PRUNED"),
        ("JOIN days d ON s.ds = d.ds OR s.ds = d.day", "PRUNED"),
        ("JOIN days d ON s.ds = d.ds OR s.item = d.year", "MIXED_WITH_DATA_COLUMNS"),
        # the other side
        ("JOIN customers c ON s.ds = c.ds", "KEY_SOURCE_NOT_SMALL"),
        ("JOIN returns r ON s.ds = r.ds", "PRUNED"),
        ("JOIN sales r ON s.ds = r.ds", "KEY_SOURCE_NOT_SMALL"),
        ("JOIN items i, customers c WHERE s.ds = concat(i.item, c.ds)", "KEY_SOURCE_NOT_SMALL"),
        ("JOIN items i, days d WHERE s.ds BETWEEN i.category AND d.ds", "KEYS_NOT_CONNECTED"),
        ("JOIN days TABLESAMPLE (10 PERCENT) d ON s.ds = d.ds", "KEY_SOURCE_NOT_DETERMINISTIC"),
        ("JOIN (SELECT ds FROM days LIMIT 3) d ON s.ds = d.ds", "KEY_SOURCE_NOT_DETERMINISTIC"),
        (
            "JOIN (SELECT ds FROM days WHERE day < current_date) d ON s.ds = d.ds",
            "KEY_SOURCE_NOT_DETERMINISTIC",
        ),
        ("JOIN (SELECT day, ds FROM days) d (ds, x) ON s.ds = d.ds", "PRUNED"),
        ("JOIN (VALUES ('1')) AS v (ds) ON s.ds = v.ds", "PRUNED"),
        ("JOIN (SELECT ds FROM days INTERSECT SELECT day FROM days) d ON s.ds = d.ds", "PRUNED"),
        ("JOIN (SELECT ds FROM days UNION SELECT day FROM days) d ON s.ds = d.ds", "PRUNED"),
        ("JOIN my_rows() AS v (ds) ON s.ds = v.ds", "KEY_SOURCE_NOT_PLANNED"),
        ("JOIN (SELECT max(ds) ds FROM days) d ON s.ds = d.ds", "PRUNED"),
        # an outer join elsewhere
        ("LEFT JOIN items i ON s.item = i.item JOIN days d ON s.ds = d.ds", "PRUNED"),
        ("JOIN days d ON s.ds = d.ds LEFT JOIN items i ON s.item = i.item", "PRUNED"),
        ("JOIN items i ON s.item = i.item LEFT JOIN days d ON s.ds = d.ds", "PRESERVED_SIDE"),
    ],
)
def test_each_step_of_the_document_has_its_decision(joined, reason):
    expected = {"s": reason}
    found = reasons(f"SELECT s.item FROM sales s {joined}")
    found.pop("r", None)
    assert found == expected


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("SELECT item, ds FROM sales b", "PRUNED"),
        ("SELECT item, b.ds FROM sales b WHERE item > 1", "PRUNED"),
        ("SELECT * FROM sales b", "PRUNED"),
        ("SELECT ds, sum(amount) FROM sales b GROUP BY ds", "PRUNED"),
        ("SELECT DISTINCT ds FROM sales b", "PRUNED"),
        ("SELECT concat(ds, '') ds FROM sales b", "PRUNED"),
        ("SELECT concat(ds, item) ds FROM sales b", "VALUE_CHANGED"),
        ("SELECT substr(ds, 1, 4) ds, sum(amount) FROM sales b GROUP BY ds", "PRUNED"),
        ("SELECT ds FROM sales b UNION ALL SELECT ds FROM days", "PRUNED"),
        ("SELECT ds FROM sales b UNION ALL SELECT concat(ds, '') FROM days", "VALUE_CHANGED"),
        ("SELECT max(ds) ds FROM sales b", "VALUE_CHANGED"),
        ("SELECT item, max(ds) ds FROM sales b GROUP BY item", "VALUE_CHANGED"),
        ("SELECT ds, count(*) FROM sales b GROUP BY ds WITH ROLLUP", "VALUE_CHANGED"),
        ("SELECT ds FROM sales b LIMIT 5", "VALUE_CHANGED"),
        ("SELECT ds, row_number() OVER (ORDER BY item) n FROM sales b", "VALUE_CHANGED"),
        ("SELECT i.item, b.ds FROM items i LEFT JOIN sales b ON i.item = b.item", "PRUNED"),
    ],
)
def test_a_changed_partition_value_is_not_pruned(inside, reason):
    """Step 4.5."""
    sql = f"SELECT 1 FROM ({inside}) q JOIN days d ON q.ds = d.ds"
    assert reasons(sql) == {"b": reason}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds AND year > 1 WHERE d.day = 'x'",
            [DAYS + "(d.day = 'x') AND (`d`.year > 1) AND `d`.`ds` IS NOT NULL"],
        ),
        # S preserved: its own ON condition still picks the keys, WHERE does too
        (
            "SELECT 1 FROM days d LEFT JOIN sales s ON s.ds = d.ds AND year > 1 WHERE d.day = 'x'",
            [DAYS + "(d.day = 'x') AND (`d`.year > 1) AND `d`.`ds` IS NOT NULL"],
        ),
        # S supplied with NULLs above the join: WHERE must not pick the keys
        (
            "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds RIGHT JOIN items i "
            "ON s.item = i.item WHERE d.year IS NULL",
            [DAYS + "`d`.`ds` IS NOT NULL"],
        ),
        # nor may what changes from run to run, or needs more than S
        (
            "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds WHERE d.day < current_date "
            "AND d.year > s.item AND d.year NOT IN (SELECT item FROM items)",
            [DAYS + "`d`.`ds` IS NOT NULL"],
        ),
        # a snowflake, by a join and by a subquery
        (
            "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds JOIN items i ON i.item = d.year "
            "AND i.category = 'x' WHERE d.year IN (SELECT item FROM items z WHERE z.item > 1)",
            [
                "SELECT DISTINCT `d`.`ds` FROM days AS `d`, items AS `i`, items AS `z` WHERE "
                "(z.item > 1) AND (i.category = 'x') AND (i.item = d.year) AND "
                "(d.year = `z`.`item`) AND `d`.`ds` IS NOT NULL"
            ],
        ),
    ],
)
def test_the_key_query_has_the_conditions_on_its_tables(sql, expected):
    assert sources(sql) == expected


def test_two_columns_of_one_key_source_are_read_as_tuples():
    sql = "SELECT 1 FROM returns r, days d WHERE r.hr = d.year AND d.ds = r.ds"
    assert sources(sql, "r") == [
        "SELECT DISTINCT `d`.`year`, `d`.`ds` FROM days AS `d` "
        "WHERE `d`.`year` IS NOT NULL AND `d`.`ds` IS NOT NULL"
    ]


def test_a_scan_may_have_two_key_sources():
    sql = "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds JOIN days e ON s.ds = e.day"
    assert len(sources(sql)) == 2


def test_only_deterministic_predicates_on_partition_columns_are_static():
    sql = """SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds
             WHERE s.ds > '2' AND s.item = 1 AND s.ds > current_date AND s.ds <> d.day"""
    (decision,) = plan(sql, STAR).decisions
    assert [condition.sql for condition in decision.alternatives[0].conditions] == ["s.ds > '2'"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT sales.ds FROM default.sales JOIN days d ON default.sales.ds = d.ds",
            {"sales": "SCAN_NOT_RESTRICTABLE"},
        ),
        ("SELECT 1 FROM dw.sales s JOIN days d ON s.ds = d.ds", {"s": "PRUNED"}),
        (
            "SELECT s._metadata.file_path FROM sales s JOIN days d ON s.ds = d.ds",
            {"s": "SCAN_NOT_RESTRICTABLE"},
        ),
        (
            "SELECT 1 FROM sales TABLESAMPLE (5 ROWS) s JOIN days d ON s.ds = d.ds",
            {"s": "SCAN_NOT_RESTRICTABLE"},
        ),
        ("SELECT 1 FROM (sales s JOIN days d ON s.ds = d.ds)", {"s": "PASSED_THROUGH"}),
        (
            "WITH q AS (SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds) SELECT * FROM q",
            {"s": "PRUNED"},
        ),
        (
            "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds UNION ALL SELECT 2 FROM returns r",
            {"s": "PRUNED", "r": "NO_CONDITION_ON_PARTITION_COLUMN"},
        ),
        (
            "SELECT 1 FROM items WHERE item IN "
            "(SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds)",
            {"s": "PRUNED"},
        ),
        (
            "INSERT OVERWRITE TABLE items SELECT s.item, d.day FROM sales s JOIN days d USING (ds)",
            {"s": "PRUNED"},
        ),
        ("CREATE TABLE t AS SELECT 1 FROM sales s, days d WHERE s.ds = d.ds", {"s": "PRUNED"}),
        (
            "SELECT sum(s.amount) OVER (PARTITION BY s.item) FROM sales s "
            "JOIN days d ON s.ds = d.ds LATERAL VIEW explode(array(1)) v AS c",
            {"s": "PRUNED"},
        ),
        ("ANALYZE TABLE sales COMPUTE STATISTICS", {}),
        ("FROM sales s JOIN days d ON s.ds = d.ds SELECT s.item", {"s": "PRUNED"}),
        ("SELECT 1 FROM sales s JOIN (SELECT ds k FROM days) ON s.ds = k", {"s": "PRUNED"}),
        (
            "WITH c AS (SELECT ds FROM days) "
            "SELECT 1 FROM c LEFT JOIN days USING (ds) JOIN sales s ON s.ds = ds",
            {"s": "CONDITION_NOT_SELF_CONTAINED"},
        ),
        (
            "WITH c AS (SELECT ds FROM days) "
            "SELECT 1 FROM c NATURAL LEFT JOIN days JOIN sales s ON s.ds = ds",
            {"s": "CONDITION_NOT_SELF_CONTAINED"},
        ),
        (
            "SELECT 1 FROM default.sales JOIN days d ON sales.ds = d.ds "
            "WHERE default.sales.info.a > 1",
            {"sales": "SCAN_NOT_RESTRICTABLE"},
        ),
        ("WITH sales AS (SELECT * FROM days) SELECT * FROM sales s JOIN days d ON s.ds = d.ds", {}),
    ],
)
def test_each_form_of_statement_gets_the_expected_reason_codes(sql, expected):
    assert reasons(sql) == expected


def test_a_repeated_join_condition_makes_one_key_query():
    sql = "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds WHERE s.ds = d.ds"
    assert len(sources(sql)) == 1


@pytest.mark.parametrize(
    "aggregate", ["first(ds)", "max_by(ds, year)", "collect_list(ds)[0]", "any_value (ds)"]
)
def test_aggregates_that_depend_on_row_order_give_no_keys(aggregate):
    sql = f"SELECT 1 FROM sales s JOIN (SELECT {aggregate} ds FROM days) d ON s.ds = d.ds"
    assert reasons(sql) == {"s": "KEY_SOURCE_NOT_DETERMINISTIC"}


def test_a_key_query_omits_conditions_that_name_the_database():
    sql = "SELECT 1 FROM sales s JOIN default.days ON s.ds = days.ds WHERE default.days.year = 1"
    assert sources(sql) == [
        "SELECT DISTINCT `days`.`ds` FROM default.days AS `days` WHERE `days`.`ds` IS NOT NULL"
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds -- x \\\n AND d.year = 1",
        "FROM sales |> LIMIT 4 |> JOIN days d ON sales.ds = d.ds",
        "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds AND d.year = 1 /* ${x} */",
        "SELECT 1 FROM sales s JOIN days d ON s.ds = IDENTIFIER('d.ds')",
        "TABLE sales",
        "SHOW TABLES",
        "DROP VIEW sales",
    ],
)
def test_a_statement_that_the_planner_can_not_read_passes_through(sql):
    found = plan(sql, STAR)
    assert found.kind is None
    assert found.passed_through
    assert found.decisions == ()


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("FROM sales s UNPIVOT (ds FOR n IN (s.ds, s.item)) WHERE ds = 'x'", "PASSED_THROUGH"),
        (
            "FROM sales s, items i PIVOT (count(*) FOR item IN (1 AS ds)) WHERE ds > 0",
            "PASSED_THROUGH",
        ),
        ("FROM (SELECT * FROM sales s WHERE ds = 'x') PIVOT (count(*) FOR item IN (1))", "PRUNED"),
    ],
)
def test_a_pivot_prevents_pruning(sql, found):
    """It replaces the columns of every relation in FROM."""
    assert reasons(f"SELECT * {sql}") == {"s": found}


def test_a_struct_column_in_a_subquery_hides_the_outer_table():
    sql = "SELECT 1 FROM sales s WHERE EXISTS (SELECT 1 FROM structs i WHERE s.ds = 'x')"
    assert reasons(sql) == {"s": "NO_CONDITION_ON_PARTITION_COLUMN"}
    assert reasons(sql.replace("structs i", "days s")) == {"s": "NO_CONDITION_ON_PARTITION_COLUMN"}
    assert reasons(sql.replace("structs", "days")) == {"s": "PRUNED"}


def test_the_target_of_an_insert_is_the_table_that_it_writes():
    sql = "INSERT OVERWRITE DIRECTORY '/x' STORED AS PARQUET SELECT item FROM sales"
    assert plan(sql, STAR).target is None
    assert plan("INSERT INTO items SELECT item, ds FROM sales", STAR).target == "items"


def test_a_long_statement_is_planned_and_a_deep_one_is_an_error():
    long = " AND ".join(f"item <> {n}" for n in range(3000))
    assert reasons(f"SELECT 1 FROM sales WHERE {long}") == {
        "sales": "NO_CONDITION_ON_PARTITION_COLUMN"
    }
    deep = "(" * 400 + "item = 1" + ")" * 400
    with pytest.raises(PlanError, match="nested too deeply"):
        plan(f"SELECT 1 FROM sales WHERE {deep}", STAR)


def test_pruning_that_is_switched_off_has_the_reason_disabled():
    sql = "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds"
    (found,) = plan(sql, STAR, Settings.of(switches={"partition_pruning": False})).decisions
    assert found.reason.value == "DISABLED"


def test_a_small_table_may_be_as_large_as_the_size_setting():
    sql = "SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds"
    name = "hive.mapjoin.smalltable.filesize"
    assert reasons(sql, **{name: "5000"}) == {"s": "PRUNED"}
    assert reasons(sql, **{name: "4999"}) == {"s": "KEY_SOURCE_NOT_SMALL"}
