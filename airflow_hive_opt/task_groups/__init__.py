"""Airflow task groups."""
