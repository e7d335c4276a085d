"""Code that Airflow's operators, sensors, links and pages share.

``connections`` decides where Spark runs, ``embedded`` runs it on this machine, ``glue`` reads
connections to AWS Glue, ``attempts`` decides which path an attempt writes to. ``earlier_runs``
reads what the run before this one found out. ``worker`` runs the local task in the task's process,
``lake_clients`` makes clients of Iceberg and Delta tables. ``handed_over`` checks the output of a
local task in the tasks after it. ``submission`` and ``start_errors`` handle submitted applications,
``waiting`` checks what sensors wait for, ``lineage`` and ``asset_events`` publish results.
``without_stack`` shortens the log of a task that fails with a message. Only ``airflow_compat``
handles the differences between versions of Airflow.
"""
