"""Airflow's SQL operator on Spark's Thrift server runs what a local task hands over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.plugins.macros import restricted_sql
from tests.operators.test_dag import start  # noqa: F401 - a fixture
from tests.operators.test_split_form import context
from tests.thrift_server.conftest import DAYS

SQL = (Path(__file__).parents[2] / "dags" / "sql" / "sales_by_category.sql").read_text()
INSERT = re.sub(r"{{ params.(\w+) }}", lambda found: {"year": "2000", "month": "11"}[found[1]], SQL)
SELECT = INSERT[INSERT.index("SELECT") :]
OLD = [("old", "TX", 1, 1, None)]


def execute(sql, conn_id="spark_thrift_server", **options):
    """What the operator returns: the rows of the last statement, sorted."""
    task = SQLExecuteQueryOperator(task_id="join", conn_id=conn_id, sql=sql, **options)
    found = task.execute({})
    rows = found if isinstance(sql, str) else found[-1]
    return sorted(map(tuple, rows))


def written():
    return execute("SELECT * FROM sales_by_category")


@pytest.fixture
def old_rows(star):
    execute("INSERT OVERWRITE TABLE sales_by_category VALUES ('old', 'TX', 1, 1, NULL)")
    assert written() == OLD


def prune(tmp_path, sql=INSERT, **options):
    """The XComs of a local task."""
    given = {"local_task": "worker", "metastore_conn_id": "metastore_default", **options}
    found = context()
    output = LocalTaskOperator(
        task_id="look", sql=sql, descriptor_path=str(tmp_path), for_other_runner=True, **given
    ).execute(found)
    return {**found["ti"].pushed, "return_value": output}


def test_the_example_dag_writes_the_rows_of_the_plain_statement(
    star,
    old_rows,
    start,  # noqa: F811
):
    found = start("thrift_server_sales", run_conf={"year": 2000, "month": 11})
    assert found.state == "success"
    assert star.partitions_read() == 30
    rows = written()
    assert execute(SELECT) == rows
    days = ", ".join(map(str, range(1035, 1065)))
    listed = execute(f"{SELECT.replace('WHERE', f'WHERE ss.ss_sold_date_sk IN ({days}) AND')}")
    assert listed == rows
    assert [row[2] for row in rows] == [60, 60]


def test_it_scans_30_of_1824_partitions(star, old_rows, tmp_path, metastore_proxy):
    handed = prune(tmp_path)
    (scan,) = handed["partitions"]
    assert (len(scan["values"]), scan["total"]) == (30, DAYS)
    metastore_proxy.plan()
    execute(handed["restricted_sql_guarded"])
    assert star.partitions_read() == 30
    assert metastore_proxy.calls.count("get_partitions_by_filter") == 1
    assert not {"get_partitions", "get_partition_names"} & set(metastore_proxy.calls)
    rows = written()
    assert execute(SELECT) == rows != OLD
    script = restricted_sql(handed["return_value"], guarded=True)
    execute("INSERT OVERWRITE TABLE sales_by_category VALUES ('old', 'TX', 1, 1, NULL)")
    execute(script, split_statements=True)
    assert star.partitions_read() == 30
    assert written() == rows
    condition, table = scan["condition"], scan["table"]
    assert execute(f"SELECT count(*) FROM {table} WHERE {condition}") == [(120,)]


def test_another_database_fails_before_anything_is_written(star, old_rows, tmp_path):
    with pytest.raises(Exception, match="airflow_hive_opt: the current database is not default"):
        execute(prune(tmp_path)["restricted_sql_guarded"], conn_id="elsewhere")
    assert written() == OLD


def test_a_new_key_fails_before_anything_is_written(star, old_rows, tmp_path):
    handed = prune(tmp_path)
    execute("INSERT INTO date_dim VALUES (7, DATE'1998-01-08', 2000, 11), (NULL, NULL, 2000, 11)")
    with pytest.raises(Exception, match="date_dim has keys now that it did not have"):
        execute(handed["restricted_sql_guarded"])
    assert written() == OLD
    execute(prune(tmp_path / "again")["restricted_sql_guarded"])
    assert star.partitions_read() == 31
    assert written() == execute(SELECT)


def test_another_time_zone_fails_before_anything_is_written(star, old_rows, tmp_path):
    handed = prune(tmp_path, local_task="spark")["restricted_sql_guarded"]
    with pytest.raises(Exception, match="spark.sql.session.timeZone is not .*, as in the local"):
        execute(["SET spark.sql.session.timeZone=Asia/Tokyo", *handed])
    assert written() == OLD
    execute(handed)
    assert star.partitions_read() == 31
    assert written() != OLD


def test_a_statement_that_passes_through_runs_as_it_is(star, old_rows, tmp_path):
    sql = "SELECT i_category, count(*) FROM item GROUP BY i_category"
    handed = prune(tmp_path, sql=sql)
    assert handed["restricted_sql_guarded"] == [sql]
    assert execute(handed["restricted_sql"]) == [("c0", 2), ("c1", 2)]
