"""Reading a statement: what pruning, rewriting and Hive's compiler share.

- ``script`` splits ``SET`` lines from the statement; ``settings`` holds Hive's settings.
- ``parse`` makes sqlglot's syntax tree, in Hive's dialect or else in Spark's. Conditions and
  subqueries remember their place in the text, so that other packages cut and splice the user's own
  words.
- ``tables`` says which tables a statement names, by its text alone.
- ``catalog`` has the data classes of tables and partitions and the protocol to look them up;
  ``types`` and ``identifiers`` say how their values and names compare.
- ``errors`` has the one error that these packages raise, with line and column.
- ``text_enum`` and ``zip_strict`` are what Python 3.9 lacks.
"""
