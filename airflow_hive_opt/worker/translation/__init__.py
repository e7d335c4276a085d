"""SQL of Spark as SQL of DuckDB, node by node.

- ``translate``: a whole query.
- ``queries``, ``from_clause``, ``conditions``: the parts of a query, and what may be left out.
- ``expressions``, ``functions``, ``casts``, ``typed``: what DuckDB evaluates exactly as Spark.
  ``lenient``: comparisons that more rows may fulfil.
- ``relations``, ``work``: names and their columns, and what was found out.
- ``nodes``: sqlglot's nodes, read strictly. ``protocols``: what these modules ask of each other.
"""
