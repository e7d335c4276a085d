"""HiveQL text to the frozen trees of ``syntax``, by Hive's own grammar.

``lexer`` makes tokens; ``statement_parser`` reads statements, with ``from_clause_parser`` and
``expression_parser`` for their parts and ``hints`` for hints. ``render`` writes trees as text.
"""
