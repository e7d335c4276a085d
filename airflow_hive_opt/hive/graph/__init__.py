"""Hive's operator graph: ``operator_graph`` defines the operators and their connections.

``backtracking`` traces a column from an operator back to the scan or ReduceSink it comes from.
"""
