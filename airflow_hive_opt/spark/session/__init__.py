"""A Spark session: embedded in this process, or on a Spark Connect server.

Only ``spark_compat`` handles the differences between versions of Spark.
"""
