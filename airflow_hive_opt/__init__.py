"""Prunes the partitions of star joins on Spark before the join starts, from Airflow.

Each package imports only those before it; ``docs/how-it-works/architecture.md`` follows a run:

- ``statement`` reads a statement, ``pruning`` decides which of its scans keys can prune,
  ``rewriting`` makes it cheaper, and ``hive`` compiles it as Hive does.
- ``metastores`` finds partitions. ``documents`` has the files that the stages exchange, and
  ``restriction`` puts partition lists into a statement. ``key_index`` tells which files hold a key.
- ``local_task`` is the first stage. It runs in the Airflow worker (``worker``) or on Spark.
- ``engines`` makes lists and conditions for other engines than Spark.
- ``explain`` prints plans, ``pages`` makes what the pages of a run show.
- ``spark`` runs both stages. :func:`airflow_hive_opt.spark.application.run.run_job` is its entry.
- Airflow's surface: ``operators``, ``task_groups``, ``decorators``, ``sensors``, ``triggers``,
  ``hooks``, ``links`` and ``plugins``, with ``provider``, which they share. ``get_provider_info``
  registers it. ``commands`` is the command line, without Airflow.
"""

__version__ = "0.1.0"
