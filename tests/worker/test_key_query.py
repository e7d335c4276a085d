"""Key queries: what is evaluated exactly, what is left out, and what is left to Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.worker.small_tables import Known, keys_of

COLUMNS = (
    ("k", "int", pa.int32()),
    ("big", "bigint", pa.int64()),
    ("small", "tinyint", pa.int8()),
    ("s", "string", pa.string()),
    ("dt", "date", pa.date32()),
    ("m", "decimal(7,2)", pa.decimal128(7, 2)),
    ("b", "boolean", pa.bool_()),
    ("f", "double", pa.float64()),
    ("t", "timestamp", pa.timestamp("us")),
)
ROWS = (
    (1, 10, 1, "a", date(2020, 1, 31), Decimal("1.50"), True, 1.0, None),
    (2, 20, 2, "b ", date(2020, 2, 29), Decimal("2.00"), False, 2.0, None),
    (3, 30, 127, "Ab", date(2019, 12, 31), None, None, None, None),
    (4, 2**62, -1, "", None, Decimal("-1.25"), True, 0.0, None),
    (5, None, None, None, date(2020, 1, 1), Decimal("7.00"), False, 0.5, None),
    (6, 60, 6, "é😀z", date(2021, 6, 15), Decimal("0.00"), True, 0.5, None),
)
NAMES = tuple((name, type_) for name, type_, _ in COLUMNS)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worker")
    known = Known()
    for name, rows in (("d", ROWS), ("e", ROWS[:2]), ("nobody", ())):
        place = folder / name
        place.mkdir()
        arrays = [
            pa.array([row[at] for row in rows], type_) for at, (_, _, type_) in enumerate(COLUMNS)
        ]
        pq.write_table(pa.table(arrays, names=[n for n, _ in NAMES]), place / "a.parquet")
        known.add(name, NAMES, Storage(str(place), "parquet"))
    place = folder / "n"
    place.mkdir()
    texts = pa.array(["1", "8", "2020-01-31", "08", "x", None, "9"])
    numbers = pa.array([1, 2, 3, 4, 5, 6, 9], pa.int32())
    pq.write_table(pa.table({"k": numbers, "s": texts}), place / "a.parquet")
    known.add("n", [("k", "int"), ("s", "string")], Storage(str(place), "parquet"))
    known.add("lake", NAMES, Storage(str(folder), "iceberg"))
    view = known.add("seen", NAMES, Storage(str(folder), "parquet"))
    known.tables["seen"] = replace(view, view="SELECT * FROM d")
    return known


def found(known, condition, key="k", from_="d AS `d`", **parameters):
    alias = from_.rpartition(" AS `")[2].partition("`")[0]
    sql = f"SELECT DISTINCT `{alias}`.`{key}` FROM {from_} WHERE ({condition})"
    return keys_of(known, sql, f"{alias}.{key}", parameters=parameters)


def exactly(known, condition, **how):
    keys = found(known, condition, **how)
    assert keys.exact
    return sorted(row[0] for row in keys.rows)


def weaker(known, condition, **how):
    keys = found(known, condition, **how)
    assert not keys.exact
    assert not keys.unique
    return sorted(row[0] for row in keys.rows)


def refused(known, condition, **how):
    with pytest.raises(Unanswered) as raised:
        found(known, condition, **how)
    return str(raised.value)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("d.k = 2", [2]),
        ("D.K == 2 OR d.k IN (3, 4L)", [2, 3, 4]),
        ("k <> 1 AND NOT k > 3", [2, 3]),
        ("d.k BETWEEN 2 AND '3'", [2, 3]),
        ("d.small = 300", []),
        ("d.k = 99999999999", []),
        ("d.big IS NULL", [5]),
        ("d.big <=> NULL", [5]),
        ("d.small NOT IN (1, 2)", [3, 4, 6]),
        ("d.small NOT IN (1, NULL)", []),
        ("d.big = d.k * 10", [1, 2, 3, 6]),
        ("d.k % 2 = 0 AND -d.k < -2", [4, 6]),
        ("d.s = 'a'", [1]),
        ("d.s = 'b'", []),
        ("d.s = ''", [4]),
        ('d.s >= "a"', [1, 2, 6]),
        ("d.s < 'a'", [3, 4]),
        ("d.s LIKE '%b%' OR d.s LIKE '__z'", [2, 3, 6]),
        ("substr(d.s, 2, 1) = '😀'", [6]),
        ("length(d.s) = 3", [6]),
        ("concat(d.s, 'x') = 'ax' OR d.s || 'x' = 'x'", [1, 4]),
        ("d.dt = '2020-01-31'", [1]),
        ("d.dt >= DATE '2020-01-31'", [1, 2, 6]),
        ("d.dt < CAST('2020-01-01' AS DATE) + INTERVAL 1 MONTH", [1, 3, 5]),
        ("date_add(d.dt, 1) = '2020-02-01' OR date_sub(d.dt, 1) = '2019-12-31'", [1, 5]),
        ("year(d.dt) = 2020 AND quarter(d.dt) = 1 AND month(d.dt) = 2 AND day(d.dt) = 29", [2]),
        ("dayofweek(d.dt) = 6 AND weekday(d.dt) = 4 AND weekofyear(d.dt) = 5", [1]),
        ("last_day(d.dt) = d.dt AND add_months(d.dt, 1) = '2020-02-29'", [1]),
        ("trunc(d.dt, 'MM') = '2020-01-01' AND datediff(d.dt, '2020-01-01') = 30", [1]),
        ("d.m = 1.5 OR d.m = 7", [1, 5]),
        ("d.m < 0.001", [4, 6]),
        ("d.b", [1, 4, 6]),
        ("NOT d.b OR d.b IS NULL", [2, 3, 5]),
        ("d.b = true AND d.b IS TRUE", [1, 4, 6]),
        ("coalesce(d.big, 7) = 7 OR nvl(d.small, 9) = 9", [5]),
        ("if(d.b, d.k, 0) = 4 OR CASE d.k WHEN 1 THEN 'x' ELSE d.s END = 'x'", [1, 4]),
        ("nullif(d.k, 1) IS NULL OR isnull(d.s)", [1, 5]),
        ("CAST(d.k AS STRING) = '3' OR CAST(d.dt AS STRING) = '2020-01-01'", [3, 5]),
        ("d.m = CAST(2 AS DECIMAL(5,2)) OR d.m = CAST(-1.25 AS decimal(9, 4))", [2, 4]),
        ("CAST(d.m AS DECIMAL(12,4)) = 1.5 OR CAST(d.k AS DECIMAL(10)) = 3", [1, 3]),
        ("CAST(d.m AS STRING) IN ('1.50', '-1.25', '0.00')", [1, 4, 6]),
        ("CAST(d.b AS STRING) = 'true' AND d.k > 1", [4, 6]),
        ("d.k IN (SELECT e.k FROM e)", [1, 2]),
        ("d.k NOT IN (SELECT e.k FROM e)", [3, 4, 5, 6]),
        ("d.k NOT IN (SELECT e.k FROM nobody e)", [1, 2, 3, 4, 5, 6]),
        ("d.k NOT IN (SELECT x.small FROM d x)", []),
        ("(d.k, d.s) IN (SELECT e.k, e.s FROM e)", [1, 2]),
        ("EXISTS (SELECT 1 FROM e WHERE e.k = d.k)", [1, 2]),
        ("NOT EXISTS (SELECT 1 FROM e WHERE e.k = d.k)", [3, 4, 5, 6]),
        ("d.k = (SELECT max(e.k) FROM e)", [2]),
        ("d.k > (SELECT count(*) FROM e)", [3, 4, 5, 6]),
        ("d.k < 5 AND NOT (d.k IN (SELECT e.k FROM e) OR d.s = '')", [3]),
        ("NOT (d.k IN (SELECT x.small FROM d x) AND d.b)", [2, 5]),
        ("d.k IN (SELECT sum(e.k) FROM e GROUP BY e.b HAVING count(*) = 1)", [1, 2]),
        ("d.k IN (WITH c AS (SELECT k FROM e) SELECT c.k FROM c UNION SELECT 4 FROM e)", [1, 2, 4]),
        ("1 = 1", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_supported_conditions_are_evaluated_exactly(known, condition, expected):
    assert exactly(known, condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("d.k > 4 AND d.f > 1", [5, 6]),
        ("d.k > 4 AND upper(d.s) = 'X'", [5, 6]),
        ("(d.k = 1 AND d.f = 0) OR (d.k = 2 AND my.f(d.s) = 3)", [1, 2]),
        ("d.k > 4 AND (d.k = 5 OR d.t > d.dt)", [5, 6]),
        ("d.k > 4 AND NOT (d.k = 5 AND d.f < 1)", [5, 6]),
        ("d.k IN (SELECT e.k FROM e WHERE e.f = 9)", [1, 2]),
        ("EXISTS (SELECT 1 FROM e WHERE e.k = d.k AND e.f = 9)", [1, 2]),
        ("EXISTS (SELECT 1 FROM e JOIN lake x ON x.k = e.k WHERE e.k = d.k)", [1, 2]),
        ("d.k < 3 AND d.k NOT IN (SELECT e.k FROM e WHERE e.f = 9)", [1, 2]),
        ("d.k < 3 AND NOT EXISTS (SELECT 1 FROM e WHERE e.k = d.k AND e.f = 9)", [1, 2]),
        ("d.k > 4 AND d.k = (SELECT max(e.k) FROM e WHERE e.f = 9)", [5, 6]),
        ("d.k > 4 AND d.k = coalesce((SELECT e.k FROM e WHERE e.k = 1 AND e.f = 9), 5)", [5, 6]),
        ("d.k > 4 AND d.k IN (SELECT max(e.k) FROM e WHERE e.f = 9)", [5, 6]),
        ("d.k > 4 AND d.k IN (SELECT x.k FROM lake x)", [5, 6]),
        ("d.k > 4 AND (d.k IN (SELECT x.small FROM d x)) IS NOT NULL", [5, 6]),
        ("d.k > 4 AND (d.k IN (SELECT x.small FROM d x)) = false", [5, 6]),
        ("d.k > 4 AND CASE WHEN d.k IN (SELECT e.k FROM e) THEN 1 ELSE 2 END = 2", [5, 6]),
        ("d.k > 4 AND d.k = '05'", [5, 6]),
        ("d.k > 4 AND d.dt = '2020-1-5'", [5, 6]),
        ("d.k > 4 AND d.s = 'it\\'s'", [5, 6]),
        ("d.k > 4 AND d.s = 'it''s'", [5, 6]),
        ("d.k > 4 AND d.k % d.small = 0", [5, 6]),
        ("d.k > 4 AND d.k / 2 = 1", [5, 6]),
        ("d.k > 4 AND coalesce(d.dt, '2020-01-01') = '2020-01-01'", [5, 6]),
        ("d.k > 4 AND CAST(d.s AS INT) = 5", [5, 6]),
        ("d.k > 4 AND CAST(d.m AS DECIMAL(7,1)) = 1", [5, 6]),
        ("d.k > 4 AND CAST(d.m AS DECIMAL(5,2)) = 1", [5, 6]),
        ("d.k > 4 AND CAST(100 AS DECIMAL(4,2)) = d.m", [5, 6]),
        ("d.k > 4 AND CAST(CAST(d.m AS DECIMAL(20,7)) AS STRING) = ''", [5, 6]),
        ("d.k > 4 AND CAST(d.s AS VARCHAR(1)) = 'a'", [5, 6]),
        ("d.k > 4 AND d.dt < '1500-01-01'", [5, 6]),
        ("d.k > 4 AND d.s LIKE 'a!%' ESCAPE '!'", [5, 6]),
        ("d.k > 4 AND d.k = 5 = d.b", [5, 6]),
        ("d.k > 4 AND :missing = 5", [5, 6]),
    ],
)
def test_conditions_that_can_not_be_evaluated_are_left_out(known, condition, expected):
    assert weaker(known, condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n.s = 8", [2, 3, 4, 5]),
        ("n.s IN (8, 1)", [1, 2, 3, 4, 5]),
        ("n.s BETWEEN 2 AND n.k + 7", [2, 3, 4, 5, 9]),
        ("n.s = DATE '2020-01-31'", [1, 2, 3, 4, 5, 9]),
        ("9 > n.s AND n.k < 3", [1, 2]),
        ("n.s = n.k AND n.k < 9", [1, 3, 4, 5]),
    ],
)
def test_a_text_in_an_unusual_form_may_equal_any_number_or_date(known, condition, expected):
    assert weaker(known, condition, from_="n AS `n`") == expected


@pytest.mark.parametrize(
    "condition",
    [
        "d.f > 1",
        "d.f > 1 AND d.k IS NOT NULL",
        "d.k = 1 OR d.f > 1",
        "d.k IN (SELECT x.k FROM lake x)",
        "d.big * 100 > 7",
        "d.k = (SELECT e.k FROM e)",
        "add_months(d.dt, 999999) = '2020-01-01'",
        "${x} = 1",
        "d.k = = 1",
    ],
)
def test_a_key_query_without_usable_conditions_or_with_an_error_is_left_to_spark(known, condition):
    refused(known, condition)


@pytest.mark.parametrize(
    ("from_", "expected"),
    [
        ("(SELECT k FROM d WHERE s = 'a') AS `x`", [1]),
        ("(SELECT * FROM d WHERE k < 3) AS `x`", [1, 2]),
        ("(SELECT DISTINCT k, s FROM d WHERE k < 3) AS `x`", [1, 2]),
        ("(SELECT e.k FROM d JOIN e ON d.k = e.k AND d.b) AS `x`", [1]),
        ("(SELECT d.k FROM d LEFT JOIN e ON d.k = e.k WHERE e.k IS NULL) AS `x`", [3, 4, 5, 6]),
        ("(SELECT d.k FROM d LEFT SEMI JOIN e ON d.k = e.k) AS `x`", [1, 2]),
        ("(SELECT d.k FROM d LEFT ANTI JOIN e ON d.k = e.k) AS `x`", [3, 4, 5, 6]),
        ("(SELECT d.k FROM e RIGHT JOIN d ON d.k = e.k WHERE e.s IS NULL) AS `x`", [3, 4, 5, 6]),
        ("(SELECT max(k) FROM e GROUP BY b) AS `x` (k)", [1, 2]),
        ("(SELECT max(k) AS k FROM d GROUP BY b) AS `x`", [3, 5, 6]),
        ("(SELECT max(k) AS k, max(f) AS f FROM d) AS `x`", [6]),
        ("(SELECT k FROM e UNION ALL SELECT small FROM e) AS `x`", [1, 2]),
        ("(WITH c (q) AS (SELECT k FROM e) SELECT q AS k FROM c) AS `x`", [1, 2]),
        ("(SELECT f AS g, k FROM d ORDER BY f) AS `x`", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_supported_queries_in_from_are_evaluated_exactly(known, from_, expected):
    assert exactly(known, "x.k > 0", from_=from_) == expected


@pytest.mark.parametrize(
    "from_",
    [
        "(SELECT k FROM d WHERE f > 1 GROUP BY k HAVING count(*) > 1) AS `x`",
        "(SELECT max(k) AS k FROM d WHERE f > 1) AS `x`",
        "(SELECT d.k FROM d LEFT JOIN lake ON d.k = lake.k RIGHT JOIN e ON e.k = d.k) AS `x`",
        "(SELECT e.k FROM d RIGHT JOIN e ON e.f = d.k) AS `x`",
        "(SELECT k FROM d EXCEPT SELECT k FROM e) AS `x`",
        "(SELECT k FROM seen) AS `x`",
        "(SELECT k FROM d GROUP BY 1) AS `x`",
        "(SELECT k FROM d GROUP BY k WITH ROLLUP) AS `x`",
        "(SELECT k FROM d HAVING max(k) > 1) AS `x`",
        "(SELECT f AS k FROM d) AS `x`",
        "(SELECT my_sum(k) AS k FROM d) AS `x`",
        "(SELECT d.k FROM lake LEFT JOIN d ON d.k = lake.k) AS `x`",
        "(SELECT k FROM d NATURAL JOIN e) AS `x`",
        "(SELECT k, s AS k FROM d) AS `x`",
        "(SELECT k FROM d LATERAL VIEW explode(array(1)) q AS z) AS `x`",
    ],
)
def test_queries_in_from_that_are_left_to_spark(known, from_):
    refused(known, "x.k > 0", from_=from_)


@pytest.mark.parametrize(
    ("from_", "expected"),
    [
        ("(SELECT k FROM d WHERE f > 9) AS `x`", [1, 2, 3, 4, 5, 6]),
        ("(SELECT d.k FROM d JOIN lake l ON d.k = l.k AND d.b) AS `x`", [1, 4, 6]),
        ("(SELECT d.k FROM lake l JOIN d ON d.k = l.k AND d.b) AS `x`", [1, 4, 6]),
        ("(SELECT d.k FROM d LEFT JOIN lake l ON d.k = l.k) AS `x`", [1, 2, 3, 4, 5, 6]),
        ("(SELECT d.k FROM d LEFT SEMI JOIN lake l ON d.k = l.k) AS `x`", [1, 2, 3, 4, 5, 6]),
        ("(SELECT d.k FROM d LEFT ANTI JOIN e ON d.f = e.f) AS `x`", [1, 2, 3, 4, 5, 6]),
        ("(SELECT k FROM d WHERE f > 9 GROUP BY k) AS `x`", [1, 2, 3, 4, 5, 6]),
        ("(SELECT DISTINCT k, f FROM d) AS `x`", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_queries_in_from_may_lose_conditions_and_return_more_rows(known, from_, expected):
    assert weaker(known, "x.k < 7", from_=from_) == expected


def test_a_column_first_named_in_a_left_out_condition_is_still_read(known):
    from_ = "(SELECT k, year(dt) AS y FROM d) AS `x`"
    assert weaker(known, "x.y = my.f(1) AND x.y = 2020", from_=from_) == [1, 2, 5]


def test_key_queries_bind_parameters(known):
    values = {"a": 2, "b": date(2020, 1, 31), "c": "Ab", "n": None, "l": [1]}
    condition = "d.k = :a OR d.dt = :b OR d.s = :c OR d.k = :n"
    assert exactly(known, condition, **values) == [1, 2, 3]
    assert weaker(known, "d.k > 4 AND d.k = :l", **values) == [5, 6]


def test_a_key_query_joins_two_tables(known):
    sql = (
        "SELECT DISTINCT `d`.`k`, `e`.`s` FROM d AS `d`, e AS `e` "
        "WHERE (d.k = e.k) AND (e.k > 1) AND `d`.`k` IS NOT NULL"
    )
    keys = keys_of(known, sql, "d.k", "e.s")
    assert (keys.rows, keys.exact, keys.unique) == (((2, "b "),), True, True)
    assert keys.tuples(["int", "string"]) == {(2, "b ")}
    assert keys.tuples(["int", "int"]) is None
    assert keys.tuples(["timestamp", "string"]) is None


def test_decimal_and_boolean_keys_are_not_returned_as_tuples(known):
    keys = keys_of(known, "SELECT DISTINCT `d`.`m`, `d`.`b` FROM d AS `d`", "d.m", "d.b")
    assert keys.count == 6
    assert keys.tuples(["decimal(7,2)", "boolean"]) is None


def test_null_and_out_of_range_keys_match_no_partition(known):
    keys = keys_of(known, "SELECT DISTINCT `d`.`big` FROM d AS `d`", "d.big")
    assert (keys.count, keys.unique) == (6, True)
    assert keys.tuples(["int"]) == {(10,), (20,), (30,), (60,)}
    assert not keys_of(known, "SELECT DISTINCT `d`.`b` FROM d AS `d`", "d.b").unique


def test_key_queries_above_max_keys_or_max_key_bytes_have_a_reason(known):
    sql = "SELECT DISTINCT `d`.`s` FROM d AS `d`"
    assert keys_of(known, sql, "d.s", bounds=KeyBounds(5, 100)) is Reason.TOO_MANY_KEYS
    assert keys_of(known, sql, "d.s", bounds=KeyBounds(6, 5)) is Reason.KEYS_TOO_LARGE
    assert keys_of(known, sql, "d.s", bounds=KeyBounds(6, 12)).count == 6


def test_a_key_query_above_its_limits_without_a_left_out_condition_is_unanswered(known):
    """It is left out, so nobody knows how many keys there are."""
    sql = "SELECT DISTINCT `d`.`s` FROM d AS `d` WHERE d.k < 6 AND upper(d.s) = 'A'"
    for bounds in (KeyBounds(4, 100), KeyBounds(5, 4)):
        with pytest.raises(Unanswered, match=r"^(TOO_MANY_KEYS|KEYS_TOO_LARGE), because .* upper"):
            keys_of(known, sql, "d.s", bounds=bounds)
    assert keys_of(known, sql, "d.s", bounds=KeyBounds(5, 100)).count == 5


@pytest.mark.parametrize(
    "condition",
    [
        "d.dt < current_date",
        "d.k < rand() * 3",
        "d.k IN (SELECT e.k FROM e LIMIT 1)",
        "d.k IN (SELECT row_number() OVER (ORDER BY e.k) FROM e)",
        "EXISTS (SELECT 1 FROM e TABLESAMPLE (10 PERCENT))",
    ],
)
def test_key_sources_that_are_not_deterministic_are_refused(known, condition):
    assert found(known, condition) is Reason.KEY_SOURCE_NOT_DETERMINISTIC


def test_the_keys_name_the_functions_that_were_evaluated(known):
    keys = found(known, "YEAR(d.dt) = 2020 AND nvl(d.k, 1) = 1 AND upper(d.s) = 'A'")
    assert keys.functions == {"year", "nvl"}


def test_a_key_query_reads_the_partition_names_of_another_table(known):
    table = known.add("p", [("v", "int")], Storage("", "orc"), [("ds", "string"), ("n", "int")])
    known.named["p"] = [Partition(("a", "1")), Partition(("b", "2")), Partition((None, "3"))]
    sql = "SELECT DISTINCT `p`.`ds` FROM `__partitions_of_p` AS `p` WHERE (p.n > 1)"
    keys = keys_of(known, sql, "p.ds", skeletons=[("__partitions_of_p", table)])
    assert set(keys.rows) == {("b",), (None,)}
    known.named["p"] = [Partition(("a", "01"))]
    with pytest.raises(Unanswered, match="no readable value"):
        keys_of(known, sql, "p.ds", skeletons=[("__partitions_of_p", table)])


@pytest.mark.parametrize(
    "condition",
    [
        "d.k * 2000000000 < 0",
        "d.k + 2147483647 < 0",
        "-2 - d.k * 1000000000 > 0",
        "d.big * 4 = 0",
        "d.k + 2147483647 BETWEEN -9 AND 9",
        "d.k IN (SELECT x.k FROM d x WHERE x.k + 2147483647 < 0)",
        "EXISTS (SELECT max(x.k) FROM d x GROUP BY x.b HAVING sum(x.big + x.big) < 0)",
    ],
)
def test_an_overflow_in_a_comparison_is_left_to_spark(known, condition):
    """DuckDB would solve it for the column. Spark without ANSI compares another number."""
    with pytest.raises(Unanswered, match=r"Overflow|out of range"):
        found(known, condition)
