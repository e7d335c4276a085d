"""What ``benchmarks.overhead`` submits beside the operator: the statement, and nothing else."""

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    session = SparkSession.builder.enableHiveSupport().getOrCreate()
    print(session.sql(sys.argv[1]).take(20))
    session.stop()
