"""Runs the statements of one file, whose URI is the argument; each ends with a line `;`.

A local task with `for_other_runner` writes such a file, `restricted_sql_guarded_uri`.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    spark = SparkSession.builder.enableHiveSupport().getOrCreate()
    ((_, text),) = spark.sparkContext.wholeTextFiles(sys.argv[1]).collect()
    for statement in text.split("\n;\n"):
        if statement.strip():
            spark.sql(statement).collect()
