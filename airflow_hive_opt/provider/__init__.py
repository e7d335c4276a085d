"""Code that Airflow's operators, sensors, links and pages share.

``connections`` decides where Spark runs, ``embedded`` runs it on this machine,
``glue`` reads connections to AWS Glue,
``attempts`` decides which path an attempt writes to.
``figures`` are the numbers that lists of runs show.
``earlier_runs`` reads what the run before this one found out.
``submission`` and ``start_errors`` handle submitted applications, ``waiting`` checks what sensors
wait for, ``lineage`` and ``asset_events`` publish results. Only ``airflow_compat`` handles the
differences between versions of Airflow.
"""
