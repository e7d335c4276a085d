"""A local task's list for other engines than Spark: the form that each of them prunes by.

- ``scan`` reads from a descriptor what one table needs: partitions, or conditions on columns.
- ``locations`` gets the folders of partitions from a metastore, ``files`` lists the files in them,
  and ``small_tables`` notices small tables that have changed since.
- ``values`` makes values of texts, ``conditions`` one condition of them all, and ``sql`` its text.
- One module an engine: ``duckdb``, ``arrow`` (PyArrow), ``polars``, ``iceberg`` (PyIceberg),
  ``delta`` (delta-rs), ``datafusion``, ``trino`` and ``bigquery``. ``merges`` checks the rows that
  an engine merges into a table, ``installed`` that the engine is there.

The one rule: the partitions and conditions may select too many rows, never too few.
"""
