"""A session of Spark: embedded, in this process, or on a Spark Connect server.

``spark_compat`` is the only place for what differs between versions of Spark.
"""
