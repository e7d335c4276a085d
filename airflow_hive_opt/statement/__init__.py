"""Reads a statement; shared by pruning, rewriting and Hive's compiler.

- ``script`` splits ``SET`` lines from the statement. ``settings`` holds Hive's settings,
  ``switches`` the planner's own.
- ``parse`` returns sqlglot's syntax tree, in Hive's dialect or else in Spark's. It records the
  position of conditions and subqueries in the text, so that other packages can copy and replace
  parts of the original text.
- ``edits`` replaces parts of the text. ``nodes`` walks the tree, within the time of ``budget``.
- ``tables`` returns the tables that a statement names, from its text alone. ``reruns`` says which
  statements of a script must not run again, ``added_rows`` to which tables a statement adds rows.
  ``one_partition`` has the parts of a statement that overwrites one partition.
- ``precheck`` finds mistakes that the text shows: unknown words, tables and parameters.
- ``template`` knows a statement again whose literals differ. ``words`` gives the words of a text,
  without parsing.
- ``catalog`` has the data classes of tables and partitions and the protocol to look them up.
  ``types`` defines which types compare exactly. ``identifiers`` quotes names.
- ``scan_ref`` identifies the scans of a statement, also those that share an alias.
- ``arguments`` checks what users pass, ``lake_formats`` names formats that list their own files.
- ``errors`` has the error that these packages raise for a statement, with line and column.
- ``dialect`` finds settings of Spark under which it reads a statement differently.
- ``text_enum`` and ``zip_strict`` provide features that Python 3.9 lacks. ``example_catalog`` is
  for doctests.
"""
