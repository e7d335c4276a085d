"""Parses HiveQL text into the immutable trees of ``syntax``, by Hive's own grammar.

``lexer`` makes tokens. ``statement_parser`` parses statements, ``from_clause_parser`` FROM clauses,
and ``expression_parser`` expressions. ``render`` writes expressions as text.
"""
