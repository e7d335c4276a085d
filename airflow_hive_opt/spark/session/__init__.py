"""A Spark session: in this process, shared by a machine's tasks, or on a Spark Connect server.

- ``session`` opens the embedded Spark on an ``embedded_warehouse``, with the Java that ``java``
  finds. ``spark_log`` starts its JVM and logs what it writes. ``derby`` reads the names of the
  embedded warehouse's tables without Spark.
- ``shared`` opens a session in the process of ``shared_server``, which it finds by
  ``shared_folder``. ``shared_settings`` says which tasks share a Spark, ``file_locks`` lets them
  wait.
- ``connect`` opens a session on a Spark Connect server, with ``connect_retries``;
  ``connect_frames`` reads its data frames. ``kept_operation`` begins a statement there that another
  process can find, and may leave it (``left_running``). ``connect_operation`` finds it, and
  ``connect_following`` follows it in an event loop; both make their requests by
  ``operation_protocol``. ``server_process`` tells whether the server was started again since.
- Settings: ``session_conf`` sets them for a block, ``dialect`` finds those that change how a
  statement is read, ``partition_lookup`` says how Spark finds partitions, ``glue`` whether the
  metastore is AWS Glue.
- While a statement runs: ``progress`` logs stages, ``interrupted_calls`` ends calls of the JVM,
  ``prompt_answers`` gets long answers without a pause, ``threads`` runs calls side by side,
  ``driver_memory`` measures. ``physical_operators`` reads plans, ``statement_errors`` tells which
  errors a retry would repeat. ``java_classes`` finds classes of the JVM by their names.
- Only ``spark_compat`` handles the differences between versions of Spark.
"""
