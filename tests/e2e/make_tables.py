"""Makes the end-to-end suite's tables: sales of 60 days by day and region, and two small tables.

python make_tables.py SPARK_SETTING=VALUE ...
"""

import sys

from airflow_hive_opt.spark.session.session import spark_session

DAYS = 60
DAY = "date_format(date_add(DATE'2026-01-01', CAST(id AS INT)), 'yyyy-MM-dd')"


def main(conf: dict[str, str]) -> None:
    with spark_session("make tables", {"spark.master": "local[2]", **conf}) as spark:
        spark.sql("CREATE DATABASE IF NOT EXISTS shop")
        spark.sql("USE shop")
        spark.sql(
            f"CREATE TABLE days STORED AS PARQUET AS SELECT {DAY} AS ds, "
            f"CAST(weekofyear({DAY}) AS INT) AS week FROM range({DAYS})"
        )
        spark.sql(
            "CREATE TABLE regions STORED AS PARQUET AS SELECT * FROM "
            "VALUES ('n', 'North'), ('s', 'South') AS r(code, name)"
        )
        spark.sql(
            "CREATE TABLE sales (item INT, amount INT) PARTITIONED BY (ds STRING, region STRING) "
            "STORED AS PARQUET"
        )
        spark.sql(
            "INSERT INTO sales PARTITION (ds, region) SELECT CAST(id AS INT), CAST(id % 7 AS INT), "
            "ds, IF(id % 2 = 0, 'n', 's') FROM (SELECT n.id, d.ds FROM range(20) n, days d)"
        )
        spark.sql(
            "CREATE TABLE by_region (name STRING, amount BIGINT) PARTITIONED BY (day STRING) "
            "STORED AS PARQUET"
        )


if __name__ == "__main__":
    main(dict(pair.split("=", 1) for pair in sys.argv[1:]))
