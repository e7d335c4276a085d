"""Airflow's task group, ``map_join_prune``: the local task and the map join as two tasks."""
