"""Tables of Spark's other catalogs, and of formats that keep their own list of files.

- ``lake_format`` says what a format must do. ``iceberg``, ``delta`` and ``hudi`` do it, with
  ``iceberg_layout`` and ``iceberg_files``, and ``formats`` is the list of them.
- ``place`` says where a table is, ``loading`` loads it, ``tables`` describes it to the planner, and
  ``files`` counts the files that a condition leaves. ``key_indexes`` says which columns have one,
  ``indexed_format`` what a format must do for that, and ``delta_files`` lists Delta's files with
  their partitions.
- Over Spark Connect, ``connect_table`` is a table as SQL describes it, of which ``connect_iceberg``
  and ``connect_delta`` know the rest.

Another format is another module, its line in ``formats``, and the planner's rules for it in
:mod:`airflow_hive_opt.statement.lake_formats`.
"""
