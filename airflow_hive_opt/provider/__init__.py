"""Code that Airflow's operators, sensors, links and pages share.

- ``connect_run`` runs a job on a Spark Connect server, and ``connect_operations`` keeps track of
  its statement there, by a record in ``operation_record``. ``earlier_statement`` decides about one
  that has not succeeded, ``overwritten_partition`` looks at the partition that it was to overwrite,
  and ``connect_deferral`` waits for it in the triggerer.
- ``connections`` decides where Spark runs, ``attempts`` which path an attempt writes to.
- ``earlier_runs`` reads what the run before this one found out, ``handed_over`` checks the output
  of a local task in the tasks after it.
- ``worker`` runs the local task in this process. ``embedded`` runs Spark on this machine, and
  ``embedded_attempt`` keeps a retry from adding rows again there.
- ``submission`` and ``start_errors`` handle submitted applications, ``kubernetes`` the pods of
  their drivers, ``yarn`` what stops an application there. ``applications`` submits and follows
  them.
- ``glue`` reads connections to AWS Glue, ``metastore_security`` the Kerberos, TLS and passwords of
  others. ``waiting`` checks what sensors wait for, and ``lake_clients`` makes the clients of tables
  that keep their own list of files.
- ``key_indexes`` finds the folder of key indexes, and the tables of which one can be built.
- ``outcome`` turns a run's outcome into XComs, log lines and an exception.
- ``lineage`` and ``asset_events`` publish results, ``other_runner`` a restricted statement for a
  runner that does not know this package. ``without_stack`` shortens the log of a task that fails
  with a message, ``sigterm`` stops the work of a task whose operator does not do it.
- Only ``airflow_compat`` handles the differences between versions of Airflow, and
  ``spark_provider`` those of its Spark provider. ``triggerer`` is what a trigger uses of Airflow
  that loads nothing else.
"""
