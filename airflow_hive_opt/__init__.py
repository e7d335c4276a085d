"""Star joins in Airflow that know their partitions before they start."""

__version__ = "0.1.0"
