"""A Spark session: in this process, shared by a machine's tasks, or on a Spark Connect server.

``shared`` opens a session in the process of ``shared_server``, which it finds by ``shared_folder``.
``shared_settings`` says which tasks share a Spark. ``spark_log`` starts the JVM of the embedded
Spark and logs what it writes. ``derby`` reads the names of the embedded warehouse's tables without
Spark. Only ``spark_compat`` handles the differences between versions of Spark.
"""
