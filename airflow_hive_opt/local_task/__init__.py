"""The first stage: collects keys and finds the partitions, files or rows that match them.

- ``local_task`` runs the stage. ``scan_kinds`` says what a kind of scan is; ``partitioned_scans``
  is one, and an ``engine`` has the others. They share a ``context``.
- ``engine`` says what reads the keys: Spark (``spark/local_task/engine.py``) or the Airflow worker
  (``worker/engine.py``).
- ``key_sets`` has the keys of all scans, and ``earlier_runs`` says which of them are not worth
  reading; ``index_trial`` says so of key indexes. ``shared_key_sets`` shares the keys with other
  tasks, ``required_keys`` keeps them for sensors.
- ``partition_search`` and ``selection`` find partitions.
- ``redundant_joins`` removes joins that the keys decide.
- ``handed_over`` and ``changes`` are for map joins that run later, and for statements that change
  rows. ``passed_through`` is for statements that are not planned.
- ``published`` writes the result, ``stopped`` is the outcome of a run that a gate has stopped.
"""
