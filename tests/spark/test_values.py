"""Partition values and keys of every kind: NULL, odd characters, types that differ."""

from __future__ import annotations

import pytest

from tests.cases import slow_but
from tests.spark.answers import ask, files_of
from tests.versions.installed import needs_spark

ODD = [
    "it's",
    'say "x"',
    "a b",
    "a/b",
    "100%",
    "a=b",
    "c:d",
    "ü",
    "back\\slash",
    "%41",
    "'\"",
    "x{y}",
    "${env:HOME}",
]


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS vals")
    spark.sql("USE vals")
    spark.createDataFrame(
        [(n, value) for n, value in enumerate([*ODD, None, "plain"])], "id int, p string"
    ).write.partitionBy("p").saveAsTable("odd")
    spark.createDataFrame(
        [(value, n) for n, value in enumerate([*ODD, None, "nowhere"])], "p string, n int"
    ).write.saveAsTable("odd_keys")
    for name, type_, values in [
        ("by_int", "INT", "(1), (2), (8), (NULL)"),
        ("by_date", "DATE", "(DATE'2020-01-01'), (DATE'2020-01-02'), (NULL)"),
        ("by_string", "STRING", "('1'), ('01'), ('2020-01-01'), ('x')"),
        ("by_tiny", "TINYINT", "(1), (2), (-3)"),
        ("by_decimal", "DECIMAL(5,2)", "(1.50), (2.00)"),
        ("by_time", "TIMESTAMP", "('2020-03-29 02:30:00'), ('2020-01-01 00:00:00')"),
        ("by_boolean", "BOOLEAN", "(true), (false), (NULL)"),
    ]:
        spark.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (p {type_}) STORED AS PARQUET")
        spark.sql(f"INSERT INTO {name} SELECT 7, CAST(col1 AS {type_}) FROM VALUES {values}")
    spark.sql("ALTER TABLE by_int ADD PARTITION (p = 9)")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE vals CASCADE")


@pytest.mark.parametrize("value", slow_but(ODD, "'\"", "%41", "back\\slash"))
def test_a_partition_value_with_special_characters_matches_its_key(spark, tmp_path, value):
    sql = "SELECT o.id, o.p FROM odd o JOIN odd_keys k ON o.p = k.p WHERE k.n = :n"
    parameters = {"n": ODD.index(value), "value": value}
    # the metastore's filters have no word for some of the values
    literal = f"{sql} AND concat(o.p, '') = :value"
    answer = ask(spark, tmp_path, sql, literal=literal, parameters=parameters)
    assert answer.rows == [(ODD.index(value), value)]
    assert answer.kept == [(value,)]
    assert files_of(answer, "odd") == 1


def test_all_partition_values_with_special_characters_match_their_keys(spark, tmp_path):
    answer = ask(spark, tmp_path, "SELECT o.id FROM odd o JOIN odd_keys k ON o.p = k.p")
    assert answer.target.kept == len(ODD)
    assert answer.target.total == len(ODD) + 2
    assert answer.target.sources[0].keys == len(ODD) + 1  # NULL is no key


def test_a_null_key_matches_no_partition(spark, tmp_path):
    sql = "SELECT o.id FROM odd o JOIN odd_keys k ON o.p = k.p WHERE k.p IS NULL"
    answer = ask(spark, tmp_path, sql)
    assert (answer.target.kept, answer.rows) == (0, [])


def keys_of(spark, type_: str, values: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMP VIEW k AS SELECT CAST(col1 AS {type_}) k FROM VALUES {values}"
    )


def listed(sql: str, partitions: list[str]) -> str:
    """The statement with the partitions of ``t`` written in, as text."""
    texts = ", ".join(f"'{text}'" for text in partitions)
    return f"{sql} AND CAST(t.p AS STRING) IN ({texts})"


@pytest.mark.parametrize(
    ("table", "type_", "values", "kept"),
    [
        ("by_int", "INT", "(1), (8), (9), (77), (NULL)", ["1", "8", "9"]),
        ("by_int", "BIGINT", "(1), (1099511627777)", ["1"]),
        ("by_int", "SMALLINT", "(2)", ["2"]),
        ("by_tiny", "BIGINT", "(1), (257), (-3)", ["-3", "1"]),
        ("by_date", "DATE", "('2020-01-02')", ["2020-01-02"]),
        ("by_string", "STRING", "('01')", ["01"]),
    ],
)
def test_keys_of_the_same_family_prune(spark, tmp_path, table, type_, values, kept):
    keys_of(spark, type_, values)
    sql = f"SELECT t.p, t.id FROM {table} t JOIN k ON t.p = k.k"
    answer = ask(spark, tmp_path, sql, literal=listed(sql, kept))
    assert [values[0] for values in answer.kept] == kept


@pytest.mark.parametrize(
    ("table", "type_", "values", "kept"),
    [
        ("by_int", "STRING", "('1'), ('08')", ["1", "8"]),
        ("by_int", "DOUBLE", "(1.0), (2.5)", ["1"]),
        ("by_date", "STRING", "('2020-01-01')", ["2020-01-01"]),
        ("by_date", "TIMESTAMP", "('2020-01-01 00:00:00')", ["2020-01-01"]),
        ("by_string", "DATE", "('2020-01-01')", ["2020-01-01"]),
        ("by_decimal", "DECIMAL(5,2)", "(1.5)", ["1.50"]),
        ("by_decimal", "INT", "(2)", ["2.00"]),
        ("by_time", "TIMESTAMP", "('2020-03-29 02:30:00')", ["2020-03-29 02:30:00"]),
        ("by_boolean", "BOOLEAN", "('true')", ["true"]),
    ],
)
def test_keys_of_another_type_prune_as_spark_compares(spark, tmp_path, table, type_, values, kept):
    keys_of(spark, type_, values)
    condition = "t.p = k.k" if table != "by_string" else "t.p = k.k AND t.p LIKE '2020%'"
    spark.sql("SET spark.sql.ansi.enabled=false")
    try:
        sql = f"SELECT t.p FROM {table} t JOIN k ON {condition}"
        answer = ask(spark, tmp_path, sql, literal=listed(sql, kept))
    finally:
        spark.sql("RESET spark.sql.ansi.enabled")
    assert answer.target.path == "skeleton"
    assert [values[0] for values in answer.kept] == kept
    assert answer.rows


@pytest.mark.parametrize(
    ("type_", "one", "other"),
    [
        ("CHAR(3)", "1", "2"),
        ("DOUBLE", "1", "2"),
        pytest.param(
            *("TIMESTAMP_NTZ", "2020-01-01 00:00:00", "2020-01-02 00:00:00"),
            marks=needs_spark("4.0"),  # before it the metastore has no such type
        ),
    ],
)
def test_partition_types_that_can_not_be_compared_are_read_whole(
    spark, tmp_path, type_, one, other
):
    spark.sql("DROP TABLE IF EXISTS oddly")
    spark.sql(f"CREATE TABLE oddly (id INT, p {type_}) USING PARQUET PARTITIONED BY (p)")
    for number, value in ((1, one), (2, other)):
        spark.sql(f"INSERT INTO oddly SELECT {number}, CAST('{value}' AS {type_})")
    keys_of(spark, type_, f"('{one}')")
    answer = ask(spark, tmp_path, "SELECT t.id FROM oddly t JOIN k ON t.p = k.k")
    assert answer.reasons == {"t": "TYPE_NOT_COMPARABLE"}
    assert files_of(answer, "oddly") == 2


def test_an_int_partition_named_with_a_leading_zero_is_found(spark, tmp_path):
    spark.sql("CREATE TABLE padded (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    location = tmp_path / "elsewhere"
    spark.createDataFrame([(5,)], "id int").write.parquet(str(location))
    spark.sql("SET spark.sql.legacy.skipTypeValidationOnAlterPartition=true")
    spark.sql(f"ALTER TABLE padded ADD PARTITION (p = '08') LOCATION '{location}'")
    spark.sql("RESET spark.sql.legacy.skipTypeValidationOnAlterPartition")
    assert spark.sql("SHOW PARTITIONS padded").collect()[0][0] == "p=08"
    spark.sql("INSERT INTO padded PARTITION (p = 9) VALUES (6)")
    keys_of(spark, "INT", "(8)")
    answer = ask(spark, tmp_path, "SELECT t.id, t.p FROM padded t JOIN k ON t.p = k.k")
    assert answer.target.kept == 1
    assert answer.rows == [(5, 8)]


def test_partitions_at_locations_with_spaces_are_read(spark, tmp_path):
    spark.sql("CREATE TABLE placed (id INT) PARTITIONED BY (p STRING) STORED AS PARQUET")
    for value in ("New York", "plain", "left out"):
        folder = tmp_path / "my tables" / f"the place of {value} 100%20"
        spark.range(5, 6).selectExpr("CAST(id AS INT) id").coalesce(1).write.parquet(str(folder))
        spark.sql(f"ALTER TABLE placed ADD PARTITION (p = '{value}') LOCATION '{folder}'")
    keys_of(spark, "STRING", "('New York'), ('plain')")
    sql = "SELECT t.id, t.p FROM placed t JOIN k ON t.p = k.k"
    answer = ask(spark, tmp_path, sql, literal=f"{sql} AND t.p IN ('New York', 'plain')")
    assert answer.rows == [(5, "New York"), (5, "plain")]
    assert (answer.target.path, files_of(answer, "my%20tables")) == ("fast", 2)


def test_partition_values_in_unusual_forms_are_compared_by_spark(spark, tmp_path):
    """On the path by names: a date without zeroes, and types that are no keys."""
    spark.sql(
        "CREATE TABLE loose (id INT) PARTITIONED BY (d DATE, p STRING, m DECIMAL(5,2), c CHAR(3)) "
        "STORED AS PARQUET"
    )
    spark.sql("SET spark.sql.legacy.skipTypeValidationOnAlterPartition=true")
    location = tmp_path / "loose"
    spark.createDataFrame([(5,)], "id int").write.parquet(str(location))
    spark.sql(
        "ALTER TABLE loose ADD PARTITION (d = '2020-1-1', p = 'it\\'s', m = '1.50', c = 'a') "
        f"LOCATION '{location}'"
    )
    spark.sql("RESET spark.sql.legacy.skipTypeValidationOnAlterPartition")
    keys_of(spark, "STRING", "('it\\'s')")
    for predicate in ("t.d > DATE'2019-01-01'", "t.m > 1", "t.c = 'a'", "t.m > :x"):
        sql = f"SELECT t.id FROM loose t JOIN k ON t.p = k.k WHERE {predicate}"
        answer = ask(spark, tmp_path, sql, parameters={"x": 1} if ":x" in sql else None)
        assert answer.rows == [(5,)], predicate


@pytest.mark.parametrize("day", ["1582-10-10", "+12020-01-01", "0000-06-01", "2020-01-01"])
def test_ancient_and_far_future_days_match_their_partitions(spark, tmp_path, day):
    """Days that Java's older classes do not have, and years that Python does not."""
    days = "(DATE'2020-01-01'), (DATE'1582-10-10'), (DATE'+12020-01-01'), (DATE'0000-06-01')"
    spark.sql("CREATE TABLE IF NOT EXISTS by_day (id INT) PARTITIONED BY (p DATE) STORED AS ORC")
    spark.sql(f"INSERT OVERWRITE by_day SELECT 7, col1 FROM VALUES {days}")
    keys_of(spark, "DATE", f"(DATE'{day}')")
    answer = ask(spark, tmp_path, "SELECT CAST(t.p AS STRING) FROM by_day t JOIN k ON t.p = k.k")
    assert answer.rows == [(day,)]


def test_an_empty_partition_is_kept(spark, tmp_path):
    keys_of(spark, "INT", "(9)")
    answer = ask(spark, tmp_path, "SELECT t.id FROM by_int t JOIN k ON t.p = k.k")
    assert (answer.target.kept, answer.rows) == (1, [])


def test_names_in_another_case_and_in_backquotes_are_resolved(spark, tmp_path):
    keys_of(spark, "INT", "(1)")
    sql = "SELECT `BY_INT`.ID FROM `VALS`.`BY_INT` JOIN K ON `By_Int`.`P` = K.K"
    assert ask(spark, tmp_path, sql).target.kept == 1


def test_pruning_keeps_the_columns_and_order_of_stars(spark, tmp_path):
    keys_of(spark, "INT", "(1)")
    answer = ask(spark, tmp_path, "SELECT *, t.* FROM by_int t JOIN k ON t.p = k.k")
    assert answer.rows == [(7, 1, 1, 7, 1)]
