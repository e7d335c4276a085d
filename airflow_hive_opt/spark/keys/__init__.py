"""The key sets of small tables, and partition names as rows.

- ``key_query``: runs key queries; several at the same time.
- ``key_ends``: the lowest and highest key if there are too many for a set.
- ``key_set``: the result of one, as typed tuples and as a relation (``local_rows``), or the keys
  that another task has read (``taken_rows``).
- ``skeleton``: partition names as a relation, on which Spark evaluates conditions.
- ``stability``: whether a query returns the same rows each time.
"""
