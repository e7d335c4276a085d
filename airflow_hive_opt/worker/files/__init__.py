"""The rows of small tables' files, as Spark reads them.

- ``folder``: which files of a folder are data.
- ``parquet``, ``orc``, ``text``: one file of a format, with its ``columns``.
- ``rows``: the files of a table and of its partitions.
"""
