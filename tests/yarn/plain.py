"""A statement as plain Spark runs it: spark-submit plain.py STATEMENT."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    with SparkSession.builder.enableHiveSupport().getOrCreate() as session:
        session.sql(sys.argv[1])
