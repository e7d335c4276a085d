"""The documents that the stages, the sensors and the pages exchange.

- ``job`` is the work of one application and its outcome, ``claims`` says which one may begin, and
  ``remote_operation`` is a statement of it on a Spark Connect server.
- ``descriptor`` is the partition list, ``binding`` the tables and settings for which it is valid,
  ``small_tables`` the files from which a worker read keys, ``gates`` the limits before the join.
  ``indexed_scans`` says what key indexes did, ``index_trial`` how long the task's runs took
  with and without them. ``descriptor_text`` shows a descriptor as text.
- ``report`` is a run's summary, ``figures`` its short form for lists of runs, and
  ``partitions_read`` the partitions that a run reads. ``clock`` measures its phases, and
  ``best_effort`` reads figures without failing the run.
- ``required`` is what sensors wait for, ``required_keys`` the keys that a local task leaves for
  them, ``key_tuples`` how documents write keys. ``key_set`` has the keys of a query for later
  tasks, and all on which they depend.
- ``format`` is the common format of these files, ``typed_json`` checks their types, ``storage``
  writes them, ``cleaning`` deletes them. ``log_text`` escapes values in log lines, ``error_text``
  shortens Spark's errors.

This package needs neither Spark, nor Airflow, nor Hive's compiler.
"""
