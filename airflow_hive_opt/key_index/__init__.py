"""The index of a table's column: for each key, the data files that hold it.

- ``manifest``: what an index has; ``part``: the files of keys that it consists of.
- ``keys``: the types that keys can have, and their values in Arrow.
- ``lookup``: the data files that hold some keys.
- ``building`` brings an index up to date with its table: ``indexed_column`` is what it asks of the
  table. ``iceberg`` and ``delta`` answer that for tables of these formats, by ``delta_log`` and
  ``parquet_keys``.
- ``batch`` makes parts of keys, ``stored_parts`` looks after the files of parts, and ``tidying``
  merges parts.
- ``checker`` proves that an index loses nothing, by code of its own and by ``checked_tables``.

The lookup needs PyArrow alone, the builder PyIceberg or deltalake too. An index may be stale: a
data file that it does not cover must be read. So an index that is absent or damaged costs speed,
never rows.
"""
