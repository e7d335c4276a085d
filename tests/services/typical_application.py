"""A Spark application with statements of the kinds that the tests run; spark-submit runs it."""

from pyspark.sql import SparkSession

STATEMENTS = (
    "CREATE TABLE t (a INT, b STRING) PARTITIONED BY (d STRING) STORED AS PARQUET",
    "CREATE TABLE u (a INT, b STRING) PARTITIONED BY (d STRING) STORED AS ORC",
    "INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')",
    "INSERT OVERWRITE TABLE u PARTITION (d) SELECT * FROM t WHERE d = 'x'",
    "SELECT t.d, COUNT(*), MAX(u.b) OVER (PARTITION BY t.d) FROM t JOIN u ON t.a = u.a"
    " WHERE t.d IN (SELECT d FROM u) GROUP BY t.d, u.b ORDER BY 1 LIMIT 3",
    "EXPLAIN EXTENDED SELECT * FROM t LEFT JOIN u USING (a)",
    "SHOW PARTITIONS t",
    "DESCRIBE EXTENDED t",
    "SELECT same(a) FROM t",
)

if __name__ == "__main__":
    session = SparkSession.builder.enableHiveSupport().getOrCreate()
    session.udf.register("same", lambda value: value)
    session.createDataFrame([(1, "a")]).write.saveAsTable("v")
    for statement in STATEMENTS:
        session.sql(statement).collect()
