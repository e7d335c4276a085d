"""Small tables that keep their own list of files, read by the libraries of their formats.

- ``catalog``: the tables of a statement; in which catalog Spark finds each, by its settings.
- ``lake_table``: what is asked of such a table.
- ``iceberg``, ``delta``: a table of the format, at one snapshot.
- ``path_io``: the files of Iceberg's tables, by the connection of the storage.
"""
