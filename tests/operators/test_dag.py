"""The example DAG: it imports, and ``dag.test()`` runs it on a small warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture(scope="module")
def database():
    """A migrated Airflow database in this test run's own home."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="module")
def star(spark):
    """The tables of the example in small: 60 days, two months."""
    spark.sql("USE default")
    day = "date_add(DATE'2000-10-01', CAST(id AS INT))"
    spark.sql(
        f"CREATE TABLE date_dim STORED AS PARQUET AS SELECT CAST(id AS INT) d_date_sk, "
        f"year({day}) d_year, month({day}) d_moy FROM range(61)"
    )
    spark.sql(
        "CREATE TABLE item STORED AS PARQUET AS "
        "SELECT CAST(id AS INT) i_item_sk, concat('c', id % 2) i_category FROM range(4)"
    )
    spark.sql("CREATE TABLE store STORED AS PARQUET AS SELECT 1 s_store_sk, 'TN' s_state")
    spark.range(610).selectExpr(
        "CAST(id % 4 AS INT) ss_item_sk",
        "1 ss_store_sk",
        "1 ss_quantity",
        "CAST(2.5 AS DECIMAL(7,2)) ss_ext_sales_price",
        "CAST(id % 61 AS INT) ss_sold_date_sk",
    ).coalesce(1).write.partitionBy("ss_sold_date_sk").saveAsTable("store_sales")
    spark.sql(
        "CREATE TABLE sales_by_category (i_category STRING, s_state STRING, sales BIGINT, "
        "quantity BIGINT, revenue DECIMAL(17,2)) STORED AS PARQUET"
    )
    yield
    for table in ("date_dim", "item", "store", "store_sales", "sales_by_category"):
        spark.sql(f"DROP TABLE {table}")


def test_the_example_runs(spark, star, database, tmp_path, monkeypatch):
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    bag = DagBag(DAGS / "tpcds_star_join.py")
    assert bag.import_errors == {}
    dag = bag.dags["tpcds_star_join"]
    with create_session() as session:
        session.merge(DagBundleModel(name="tests"))
    sync_bag_to_db(bag, "tests", "1")
    dag.task_dict["sales_by_category"].descriptor_path = str(tmp_path)

    run = dag.test(run_conf={"year": 2000, "month": 11})

    assert run.state == "success"
    (instance,) = run.get_task_instances()
    summary = instance.xcom_pull(task_ids="sales_by_category")
    assert (summary["kept"], summary["total"]) == (30, 61)
    assert Path(summary["uri"]).exists()
    rows = sorted(map(tuple, spark.table("sales_by_category").collect()))
    assert [row[:3] for row in rows] == [("c0", "TN", 150), ("c1", "TN", 150)]
