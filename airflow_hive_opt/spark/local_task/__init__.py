"""The parts of the local task that only Spark can do.

- ``correlate`` rewrites before planning, and ``snapshots`` holds tables to their snapshots.
- ``scans_of_plan`` runs the local task of a plan.
- ``engine`` reads keys and evaluates conditions on Spark. ``lake_scans`` and ``data_columns`` are
  its kinds of scans.
- ``described_keys`` says on what the keys of a query depend, for key sets.
- ``listed_keys`` says when metadata may give keys. ``value_lists``, ``row_filters``, ``row_groups``
  and ``column_samples`` make conditions on columns.
- ``indexed_files`` makes conditions from key indexes, by the ``partition_values`` of
  ``data_files``. They hold for the table's ``fixed_snapshots``. ``narrowed_tables`` follows keys
  from one large table to the next, if ``table_parts`` finds that it pays.
"""
