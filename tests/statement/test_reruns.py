"""Which statements of a script must not run again."""

from __future__ import annotations

import pytest

from airflow_hive_opt.statement.reruns import RanStatement, must_not_run_again

SCANNED = ("dw.a", "dw.b", "dw.live", "dw.m")


def refused(*statements):
    """The numbers of the statements, whose scans are of tables of these names."""
    return must_not_run_again([RanStatement(sql, SCANNED) for sql in statements])


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT * FROM a", "WITH c AS (SELECT 1) SELECT * FROM c", "VALUES (1)"),
        "INSERT OVERWRITE r SELECT * FROM a",
        "INSERT OVERWRITE other.a SELECT * FROM dw.a",
        "INSERT OVERWRITE TABLE r PARTITION (p = 1) SELECT * FROM a",
        "FROM a INSERT OVERWRITE TABLE r SELECT 1 INSERT OVERWRITE TABLE s SELECT 2",
        "CREATE TABLE r AS SELECT * FROM a",
        "CREATE TABLE IF NOT EXISTS r (n INT)",
        *("DROP TABLE IF EXISTS r", "TRUNCATE TABLE r", "ALTER TABLE r DROP PARTITION (p = 1)"),
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM a",
        *("SET x = y", "SET VAR n = 1", "USE dw", "SHOW TABLES", "EXPLAIN SELECT * FROM v"),
        *("ADD JAR '/a.jar'", "CACHE TABLE c AS SELECT * FROM a", "REFRESH TABLE a"),
        *("ANALYZE TABLE a COMPUTE STATISTICS", "DESCRIBE a", "CREATE DATABASE IF NOT EXISTS d"),
    ],
)
def test_a_statement_that_replaces_what_it_writes_may_run_again(sql):
    assert refused(sql) == ()


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "INSERT INTO r SELECT 1",
            "FROM a INSERT OVERWRITE TABLE r SELECT 1 INSERT INTO s SELECT 2",
        ),
        *("UPDATE r SET n = n + 1", "LOAD DATA INPATH '/a' INTO TABLE r"),
        "MERGE INTO r USING a ON r.k = a.k WHEN MATCHED THEN DELETE",
        # what it reads is what it changes
        "INSERT OVERWRITE m SELECT * FROM m UNION ALL SELECT * FROM a",
        "INSERT OVERWRITE m SELECT * FROM dw.M",
        "INSERT OVERWRITE spark_catalog.dw.m SELECT * FROM m",
        "INSERT OVERWRITE lake.a.b.r SELECT * FROM lake.a.b.r",
        "INSERT OVERWRITE dw.m SELECT count(*) FROM dw.m.snapshots",
        "CREATE OR REPLACE TABLE m AS SELECT n + 1 AS n FROM m",
        "WITH c AS (SELECT * FROM m) INSERT OVERWRITE m SELECT * FROM c",
        "DELETE FROM m WHERE n IN (SELECT max(n) FROM m)",
        # no scan confirms that v is no view of r
        "INSERT OVERWRITE r SELECT * FROM v",
        # files may be those of a table that it reads
        "INSERT OVERWRITE DIRECTORY '/a' SELECT * FROM a",
        "INSERT OVERWRITE delta.`/a` SELECT * FROM a",
        # not understood
        *("BEGIN INSERT INTO r SELECT 1; END", "CALL system.rollback('r')", "OPTIMIZE r"),
        *("EXECUTE IMMEDIATE 'INSERT INTO r SELECT 1'", "MSCK REPAIR TABLE r", "Merge nonsense ("),
        "DROP DATABASE dw CASCADE",
    ],
)
def test_a_statement_that_may_change_a_table_once_more_must_not_run_again(sql):
    assert refused(sql) == (0,)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["INSERT OVERWRITE archive SELECT * FROM live", "DELETE FROM live WHERE n < 3"], (1,)),
        (["INSERT OVERWRITE archive SELECT * FROM live", "TRUNCATE TABLE dw.live"], (1,)),
        (["INSERT OVERWRITE archive SELECT * FROM live", "DROP TABLE live"], (1,)),
        (["INSERT OVERWRITE archive SELECT * FROM live", "ALTER TABLE live RENAME TO z"], (1,)),
        (["INSERT OVERWRITE m SELECT * FROM a", "INSERT OVERWRITE a SELECT * FROM m"], (0, 1)),
        (["SET VAR n = (SELECT count(*) FROM m)", "INSERT OVERWRITE m SELECT 1"], (0, 1)),
        (["USE x", "DESCRIBE y", "REFRESH TABLE z", "INSERT OVERWRITE r SELECT * FROM a"], ()),
        (["CACHE TABLE c AS SELECT * FROM m", "INSERT OVERWRITE m SELECT * FROM a"], (1,)),
        # a temporary view reads what its definition names
        (["CREATE TEMP VIEW v AS SELECT * FROM a", "INSERT OVERWRITE r SELECT * FROM v"], ()),
        (["CREATE TEMP VIEW v AS SELECT * FROM m", "INSERT OVERWRITE m SELECT * FROM v"], (1,)),
        (["CREATE VIEW v AS SELECT * FROM m", "INSERT OVERWRITE m SELECT * FROM v"], (0, 1)),
        (["INSERT OVERWRITE r SELECT * FROM a", "INSERT OVERWRITE s SELECT * FROM b"], ()),
        (["INSERT OVERWRITE r SELECT * FROM a", "INSERT INTO s SELECT * FROM b"], (1,)),
        ([], ()),
    ],
)
def test_statements_together_must_find_what_they_read_as_it_was(statements, expected):
    assert refused(*statements) == expected
