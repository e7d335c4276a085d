"""Looks up tables and partitions: Spark's catalog, Spark Connect, or Thrift.

``session_catalog`` is the protocol, and chooses between ``spark_catalog`` and ``connect_catalog``.
Both list partitions as ``listed_partitions`` says.
``lakes`` is for tables that list their own files.
``remote_metastore`` chooses where the local task looks up partitions. ``resolved_names`` finds what
all names of a statement stand for (``definitions``), with ``session_definitions`` or
``connect_definitions``. ``listed_functions`` has the functions that a statement may name.
``table_facts`` and ``statistics`` read descriptions of tables, ``fetched_together`` fetches several
tables at once, ``work`` counts calls. ``table_state`` says whether a table has changed, by its
files (``folder_files``) or its snapshot. ``files_below`` lists a folder without the JVM.
``session_binding`` records how a session reads a statement, and compares.
"""
