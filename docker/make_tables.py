"""Creates small tables for the example DAGs, with columns of TPC-DS: a year of sales by day.

    spark-submit make_tables.py

Existing tables stay unchanged.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

DAYS = 366
DAY = "date_add(DATE'2000-01-01', CAST(id AS INT))"


def main() -> None:
    """Creates the missing tables."""
    spark = SparkSession.builder.enableHiveSupport().getOrCreate()
    spark.sql(
        "CREATE TABLE IF NOT EXISTS date_dim STORED AS PARQUET AS "
        f"SELECT CAST(id AS INT) d_date_sk, {DAY} d_date, "
        f"year({DAY}) d_year, month({DAY}) d_moy FROM range({DAYS})"
    )
    spark.sql(
        "CREATE TABLE IF NOT EXISTS item STORED AS PARQUET AS SELECT CAST(id AS INT) i_item_sk, "
        "element_at(array('Books', 'Music', 'Sports'), CAST(id % 3 AS INT) + 1) i_category "
        "FROM range(12)"
    )
    spark.sql(
        "CREATE TABLE IF NOT EXISTS store STORED AS PARQUET AS "
        "SELECT * FROM VALUES (0, 'TN'), (1, 'SD') AS s(s_store_sk, s_state)"
    )
    if not spark.catalog.tableExists("store_sales"):
        sales = spark.range(DAYS * 20).selectExpr(
            "CAST(id % 12 AS INT) ss_item_sk",
            "CAST(id % 2 AS INT) ss_store_sk",
            "CAST(id % 5 AS INT) + 1 ss_quantity",
            "CAST(id % 100 AS DECIMAL(7, 2)) ss_ext_sales_price",
            f"CAST(id % {DAYS} AS INT) ss_sold_date_sk",
        )
        sales.coalesce(1).write.partitionBy("ss_sold_date_sk").saveAsTable("store_sales")
    spark.sql(
        "CREATE TABLE IF NOT EXISTS sales_by_category (i_category STRING, s_state STRING, "
        "sales BIGINT, quantity BIGINT, revenue DECIMAL(17, 2)) STORED AS PARQUET"
    )
    spark.sql(
        "CREATE TABLE IF NOT EXISTS sales_by_day (sales BIGINT, revenue DECIMAL(17, 2)) "
        "PARTITIONED BY (day STRING) STORED AS PARQUET"
    )
    spark.stop()


if __name__ == "__main__":
    main()
