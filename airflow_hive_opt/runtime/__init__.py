"""Data that the stages exchange: partitions, the descriptor, the report.

This package needs neither Spark nor Airflow.
"""
