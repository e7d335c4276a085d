"""A Spark session: in this process, shared by a machine's tasks, or on a Spark Connect server.

``session`` opens the embedded Spark. ``shared`` opens a session in the process of
``shared_server``, which it finds by ``shared_folder``. ``shared_settings`` says which tasks share a
Spark. ``spark_log`` starts the JVM of the embedded Spark and logs what it writes. ``derby`` reads
the names of the embedded warehouse's tables without Spark. ``connect`` opens a session on a server,
with ``connect_frames`` and ``connect_retries``.

``java`` finds a Java. ``session_conf`` and ``partition_lookup`` set settings for a block, ``glue``
and ``dialect`` read settings. ``statement_errors`` classifies Spark's errors. ``progress`` logs
running stages, ``driver_memory`` measures, ``physical_operators`` lists a plan. ``threads``,
``file_locks`` and ``interrupted_calls`` are for threads, processes and timeouts. Only
``spark_compat`` handles the differences between versions of Spark.
"""
