"""Keys as a condition on a data column: the same rows, fewer of them read."""

from __future__ import annotations

import pytest

from airflow_hive_opt.pruning.rules import key_predicates as key_predicates_rule
from airflow_hive_opt.spark.local_task import data_columns as key_predicates
from airflow_hive_opt.statement.settings import Settings
from tests.cases import slow_but
from tests.spark.answers import ask

ON = Settings.of({"hive.mapjoin.smalltable.filesize": "10000"}, {"key_predicate": True})
ROWS = 60_000


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    """``sorted_*`` and ``days`` are clustered by ``item``, ``shuffled`` is not."""
    spark.sql("CREATE DATABASE predicates")
    spark.sql("USE predicates")
    rows = spark.range(ROWS).selectExpr(
        "CAST(id DIV 3 AS INT) AS item",
        "concat('n', lpad(id DIV 3, 6, '0')) AS name",
        "date_add(DATE'2000-01-01', CAST(id DIV 30 AS INT)) AS day",
        "id AS amount",
        "CAST(id % 3 AS STRING) AS ds",
    )
    ordered = rows.repartitionByRange(4, "item").sortWithinPartitions("item")
    for format_, size in (("parquet", "parquet.page.row.count.limit"), ("orc", "x")):
        writer = ordered.write.format(format_).option(size, "500")
        writer.option("orc.stripe.size", "1").saveAsTable(f"sorted_{format_}")
    rows.selectExpr("*", "amount % 977 AS o").orderBy("o").drop("o").coalesce(2).write.saveAsTable(
        "shuffled"
    )
    ordered.write.option("parquet.page.row.count.limit", "500").partitionBy("ds").saveAsTable(
        "days"
    )
    spark.sql("CREATE TABLE texts STORED AS TEXTFILE AS SELECT * FROM shuffled")
    spark.sql("CREATE TABLE items (item BIGINT, name STRING, day DATE, kind STRING, ds STRING)")
    columns = "SELECT item, name, day"
    spark.sql(
        f"INSERT INTO items SELECT /*+ COALESCE(1) */ * FROM ("
        f"{columns}, 'few', ds FROM days WHERE item IN (7, 8, 19000) AND ds < 2 "
        f"UNION ALL {columns}, 'run', ds FROM days WHERE item BETWEEN 500 AND 749 AND ds = 0 "
        f"UNION ALL {columns}, 'all', ds FROM days WHERE item % 80 = 0 AND ds = 0 "
        "UNION ALL SELECT NULL, NULL, NULL, 'few', '1' "
        "UNION ALL SELECT 5000000000, 'n0', NULL, 'few', '1' "
        "UNION ALL SELECT 7, 'it\\'s', NULL, 'quotes', '1' "
        "UNION ALL SELECT 7, CAST(X'FF' AS STRING), NULL, 'bytes', '1')"
    )
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE predicates CASCADE")


def asked(spark, tmp_path, table: str, kind: str, column: str = "item"):
    return ask(
        spark,
        tmp_path,
        f"SELECT b.amount, i.kind FROM {table} b JOIN items i ON b.{column} = i.{column} "
        f"WHERE i.kind = '{kind}'",
        settings=ON,
    )


@pytest.mark.parametrize("column", slow_but(["item", "name", "day"], "item", "day"))
@pytest.mark.parametrize("table", ["sorted_parquet", "sorted_orc"])
def test_few_keys_of_a_sorted_table_skip_most_of_it(spark, tmp_path, table, column):
    answer = asked(spark, tmp_path, table, "few", column)
    (found,) = answer.descriptor.row_filters
    assert (found.scan.alias, found.column) == ("b", column)
    assert answer.scanned.rows_scanned < answer.plain.rows_scanned
    assert answer.rows


def test_a_list_is_handed_to_parquet_whole(spark, tmp_path):
    before = spark.conf.get("spark.sql.parquet.pushdown.inFilterThreshold")
    answer = ask(
        spark,
        tmp_path,
        "SELECT b.amount FROM sorted_parquet b JOIN (SELECT DISTINCT item FROM items "
        "WHERE CAST(item AS STRING) LIKE '61_') i ON b.item = i.item",
        settings=ON,
    )
    (found,) = answer.descriptor.row_filters
    assert (len(found.values), found.is_range) == (10, False)
    assert answer.scanned.rows_scanned < answer.plain.rows_scanned / 2
    assert spark.conf.get("spark.sql.parquet.pushdown.inFilterThreshold") == before


def test_many_keys_together_become_a_range(spark, tmp_path):
    (found,) = asked(spark, tmp_path, "sorted_parquet", "run").descriptor.row_filters
    assert (found.is_range, found.values) == (True, ("500", "749"))


@pytest.mark.parametrize(
    ("table", "kind"),
    [("sorted_parquet", "all"), ("shuffled", "few"), ("texts", "few"), ("sorted_parquet", "none")],
)
def test_keys_that_skip_little_are_not_used(spark, tmp_path, table, kind):
    answer = asked(spark, tmp_path, table, kind)
    if kind == "none":  # no key at all: nothing needs to be read
        assert answer.descriptor.row_filters[0].values == ()
    else:
        assert answer.descriptor.row_filters == ()


def test_beside_partition_pruning(spark, tmp_path):
    answer = ask(
        spark,
        tmp_path,
        "SELECT b.amount FROM days b JOIN items i ON b.item = i.item AND b.ds = i.ds "
        "WHERE i.kind = 'few' AND i.name LIKE '%00000_'",
        literal="SELECT b.amount FROM days b JOIN items i ON b.item = i.item AND b.ds = i.ds "
        "WHERE i.kind = 'few' AND i.name LIKE '%00000_' AND b.ds IN ('0', '1') "
        "AND b.item IN (7, 8)",
        settings=ON,
    )
    assert [found.column for found in answer.descriptor.row_filters] == ["item"]
    assert answer.scanned.rows_scanned < answer.plain.rows_scanned


def test_partitions_that_lie_elsewhere(spark, tmp_path):
    spark.sql(
        "CREATE TABLE elsewhere (item INT, name STRING, day DATE, amount BIGINT) "
        "PARTITIONED BY (ds STRING) STORED AS PARQUET"
    )
    folder = spark.sql("DESCRIBE FORMATTED days").filter("col_name = 'Location'").first().data_type
    for ds in "012":
        spark.sql(f"ALTER TABLE elsewhere ADD PARTITION (ds='{ds}') LOCATION '{folder}/ds={ds}'")
    answer = ask(
        spark,
        tmp_path,
        "SELECT b.amount FROM elsewhere b JOIN items i ON b.item = i.item AND b.ds = i.ds "
        "WHERE i.kind = 'few' AND i.name LIKE '%00000_'",
        settings=ON,
    )
    assert [found.column for found in answer.descriptor.row_filters] == ["item"]
    assert answer.scanned.rows_scanned < answer.plain.rows_scanned


@pytest.mark.parametrize("kind", ["quotes", "bytes"])
def test_keys_with_special_characters_make_no_row_filter(spark, tmp_path, kind):
    answer = asked(spark, tmp_path, "sorted_parquet", kind, "name")
    assert answer.descriptor.row_filters == ()


def test_bytes_that_are_no_text_keep_their_rows(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(key_predicates, "MOST_ROWS_READ", 1.0)
    monkeypatch.setattr(key_predicates_rule, "_LARGE", 0)
    spark.sql("CREATE TABLE raw USING PARQUET AS SELECT CAST(X'FF' AS STRING) AS name, 7 AS v")
    sql = "SELECT r.v FROM raw r JOIN items i ON r.name = i.name WHERE i.kind = 'bytes'"
    assert ask(spark, tmp_path, sql, settings=ON).rows == [(7,)]


@pytest.mark.parametrize("other", ["STRING", "BIGINT"])
def test_files_of_another_type_than_the_table(spark, tmp_path, other):
    """An older schema: Spark reads it, its statistics say nothing."""
    rows = f"SELECT CAST(item AS {other}) AS item, amount FROM sorted_orc"
    place = tmp_path / "older"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW older AS {rows}")
    spark.table("older").write.orc(str(place))
    kind = "INT" if other == "STRING" else "STRING"
    spark.sql(
        f"CREATE TABLE newer_{other} (item {kind}, amount BIGINT) USING ORC LOCATION '{place}'"
    )
    column = "item" if kind == "INT" else "CAST(item AS STRING) AS item"
    sql = (
        f"SELECT count(*) FROM newer_{other} b JOIN (SELECT {column} FROM items "
        "WHERE kind = 'few') i ON b.item = i.item"
    )
    assert ask(spark, tmp_path, sql, settings=ON).descriptor.row_filters == ()


WHOLE = [
    "SELECT b.amount FROM days b LEFT JOIN items i ON b.item = i.item AND i.kind='few'",
    "SELECT b.amount FROM days b FULL JOIN items i ON b.item = i.item AND i.kind='few'",
    "SELECT b.amount FROM days b JOIN items i ON b.item <=> i.item AND i.kind = 'few'",
    "SELECT b.amount FROM sorted_parquet b LEFT ANTI JOIN items i ON b.item = i.item",
    "SELECT b.amount FROM sorted_parquet b JOIN items i ON b.item = i.item OR b.amount = 1",
    "SELECT b.amount FROM sorted_parquet b JOIN items i ON CAST(b.item AS STRING) = i.name",
]


@pytest.mark.parametrize("sql", slow_but(WHOLE, *WHOLE[:4:2], WHOLE[5]))
def test_rows_that_may_be_needed_are_read(spark, tmp_path, sql):
    assert ask(spark, tmp_path, sql, settings=ON).descriptor.row_filters == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT i.kind, b.amount FROM items i LEFT JOIN sorted_parquet b ON b.item = i.item "
        "WHERE i.kind = 'few'",
        "SELECT b.amount FROM sorted_parquet b WHERE b.item IN "
        "(SELECT item FROM items WHERE kind = 'few')",
        "SELECT z.s FROM (SELECT b.name, sum(b.amount) AS s FROM sorted_parquet b JOIN items i "
        "ON b.item = i.item WHERE i.kind = 'few' GROUP BY b.name) z",
        "SELECT a.amount, b.amount FROM sorted_parquet a JOIN items i ON a.item = i.item "
        "JOIN sorted_parquet b ON b.item = i.item WHERE i.kind = 'few'",
    ],
)
def test_where_the_keys_reach(spark, tmp_path, sql):
    answer = ask(spark, tmp_path, sql, settings=ON)
    assert answer.descriptor.row_filters
    assert answer.scanned.rows_scanned < answer.plain.rows_scanned


def test_off_by_default(spark, tmp_path):
    sql = "SELECT b.amount FROM sorted_parquet b JOIN items i ON b.item = i.item"
    assert ask(spark, tmp_path, sql).descriptor.row_filters == ()
