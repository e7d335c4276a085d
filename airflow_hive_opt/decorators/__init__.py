"""Airflow task decorators."""
