"""The operators of Spark's plans, with adaptive execution and without."""

from __future__ import annotations

import pytest

from airflow_hive_opt.spark.session.physical_operators import leaves, operators
from airflow_hive_opt.spark.session.session_conf import conf_set

DAYS = "SELECT max(ds) FROM leaf_days"
QUERIES = {
    "join": "SELECT a.v FROM leaf_facts a JOIN leaf_facts b ON a.v = b.v",
    "nested subqueries": (
        f"SELECT v FROM leaf_facts WHERE v > (SELECT min(v) FROM leaf_facts WHERE ds < ({DAYS}))"
    ),
    "three levels": (
        f"SELECT v FROM leaf_facts WHERE v > (SELECT min(v) FROM leaf_facts WHERE v < "
        f"(SELECT max(v) FROM leaf_facts WHERE ds < ({DAYS})))"
    ),
}


@pytest.fixture(scope="module")
def tables(spark):
    for name in ("leaf_facts", "leaf_days"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        columns = "id AS v, CAST(id % 3 AS string) AS ds"
        spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT {columns} FROM range(30)")
    yield spark
    for name in ("leaf_facts", "leaf_days"):
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("name", QUERIES)
def test_the_leaves_have_every_scan_as_often_as_the_operators(tables, name, adaptive):
    with conf_set(tables, {"spark.sql.adaptive.enabled": adaptive}):
        frame = tables.sql(QUERIES[name])
        frame.collect()
        plan = frame._jdf.queryExecution().executedPlan()
        found = [kind for kind, _ in leaves(plan) if kind == "FileSourceScanExec"]
        every = [kind for kind, _ in operators(plan) if kind == "FileSourceScanExec"]
    assert found == every != []
