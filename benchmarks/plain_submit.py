"""The script that ``benchmarks.overhead`` submits for comparison: it only runs the statement."""

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    session = SparkSession.builder.enableHiveSupport().getOrCreate()
    print(session.sql(sys.argv[1]).take(20))
    session.stop()
