"""The command line, one module for each command.

``main`` parses the arguments. ``statement_check`` shows what is wrong with a statement.
"""
