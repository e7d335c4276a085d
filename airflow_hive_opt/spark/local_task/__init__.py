"""The first stage: collects keys and finds the partitions, files or rows that they call for.

- ``local_task`` runs the stage. ``scan_kinds`` says what a kind of scan is: ``partitioned_scans``,
  ``lake_scans`` and ``data_columns``. They share a ``context``.
- ``key_sets`` has the keys of all scans, ``listed_keys`` says when metadata may give them, and
  ``earlier_runs`` which of them are not worth reading. ``required_keys`` keeps them for sensors.
- ``partition_search`` and ``selection`` find partitions. ``value_lists``, ``row_filters``,
  ``row_groups`` and ``column_samples`` make conditions on columns.
- ``redundant_joins`` removes joins that the keys decide, ``correlate`` rewrites before planning.
- ``handed_over``, ``snapshots`` and ``changes`` are for map joins that run later, and for
  statements that change rows.
"""
