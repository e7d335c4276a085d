"""Airflow's task decorator, ``map_join_prune``: a function that returns the statement."""
