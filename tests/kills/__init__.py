"""Kills at each phase of a statement that writes: on a cluster, and over Spark Connect.

- ``matrix`` has the cases: a victim, how it ends, and a phase.
- ``cluster_task`` and ``connect_task`` are the kinds of tasks: where their phases show, and
  what of them still runs. ``airflow_task`` is what they share.
- ``rounds`` runs a case: starts a task, ends the victim, starts again what a supervisor would, and
  says what the table has and what is left.
"""
