"""Hive's operator graph: ``operator_graph`` has the operators and how they are connected.

``backtracking`` follows a column from an operator back to the scan or shuffle that it comes from.
"""
