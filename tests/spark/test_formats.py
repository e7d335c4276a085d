"""Storage formats, and partitions that are not where or what one expects."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cases import slow_but
from tests.spark.answers import ask

FORMATS = ["PARQUET", "ORC", "TEXTFILE", "AVRO"]


@pytest.fixture(scope="module", autouse=True)
def database(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS formats")
    spark.sql("USE formats")
    spark.sql(
        "CREATE TABLE wanted STORED AS PARQUET AS SELECT * FROM VALUES ('a b'), ('far'), ('old'), "
        "('gone'), ('empty'), ('A'), (NULL), ('nowhere') AS w(k)"
    )
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE formats CASCADE")


@pytest.fixture(params=slow_but(FORMATS, "PARQUET", "TEXTFILE"))
def fact(spark, request, tmp_path) -> str:
    """A table with partitions of all kinds.

    These are: an escaped name, a custom location, an older schema, a missing directory, no rows,
    a name in capitals, NULL, and one that matches no key.
    """
    name = f"fact_{request.param.lower()}"
    spark.sql(f"CREATE TABLE {name} (Id INT) PARTITIONED BY (P STRING) STORED AS {request.param}")
    values = ("old", "gone", "a b", "A", "other/1")
    for number, value in enumerate(values):
        spark.sql(f"INSERT INTO {name} PARTITION (p = '{value}') VALUES ({number})")
    spark.sql(f"INSERT INTO {name} PARTITION (p) SELECT 77, CAST(NULL AS STRING)")
    far = tmp_path / "far away"
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (p = 'far') LOCATION '{far}'")
    spark.sql(f"INSERT INTO {name} PARTITION (p = 'far') VALUES (50)")
    assert any(far.iterdir())
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (p = 'empty')")
    if request.param != "AVRO":  # whose schema a partition keeps
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS (later STRING)")
        spark.sql(f"INSERT INTO {name} PARTITION (p = 'A') VALUES (60, 'new')")
    if request.param in ("PARQUET", "ORC"):  # of a serde's partitions Spark asks each to be there
        lose_directory(spark, name)
    yield name
    spark.sql(f"DROP TABLE {name}")


def lose_directory(spark, name: str) -> None:
    described = spark.sql(f"DESCRIBE FORMATTED {name} PARTITION (p = 'gone')").collect()
    location = next(row.data_type for row in described if row.col_name == "Location")
    shutil.rmtree(Path(location.removeprefix("file:")))
    spark.catalog.refreshTable(name)


def test_keys_prune_partitions_of_every_format_and_location(spark, tmp_path, fact):
    answer = ask(
        spark,
        tmp_path,
        f"SELECT f.*, w.k FROM {fact} f JOIN wanted w ON f.p = w.k",
        literal=f"SELECT f.*, w.k FROM {fact} f JOIN wanted w ON f.p = w.k "
        "AND f.p IN ('a b', 'far', 'old', 'gone', 'empty', 'A')",
    )
    kept = [values[0] for values in answer.kept]
    assert kept == ["A", "a b", "empty", "far", "gone", "old"]
    assert (answer.target.path, answer.target.total) == ("fast", 8)
    assert {row[0] for row in answer.rows} - {1, 60} == {0, 2, 3, 50}
    # upper() makes 'A' of 'a', and the skeleton finds it; column names are read in any case
    sql = f"SELECT F.ID FROM {fact} F JOIN wanted w ON upper(F.P) = upper(W.K) AND w.k < 'B'"
    # a serde gives the NULL partition's name as its value, which no skeleton tells
    by_serde = fact in ("fact_textfile", "fact_avro")
    listed = "concat(F.P, '')" if by_serde else "F.P"
    answer = ask(spark, tmp_path, sql, literal=f"{sql} AND {listed} IN ('a', 'A')")
    assert answer.kept == [("A",), (None,)] if by_serde else [("A",)]
    assert (answer.target.path, bool(answer.rows)) == ("skeleton", True)
    sql = f"SELECT f.id FROM {fact} f JOIN wanted w ON f.p <=> w.k AND w.k IS NULL"
    answer = ask(spark, tmp_path, sql, literal=f"{sql} AND coalesce(f.p, '-') = '-'")
    assert (answer.kept, answer.rows) == ([(None,)], [] if by_serde else [(77,)])
    sql = f"SELECT f.id, f.p FROM {fact} f JOIN wanted w ON f.p > w.k AND w.k = 'A'"
    answer = ask(spark, tmp_path, sql)
    assert ((None,) in answer.kept) == by_serde
