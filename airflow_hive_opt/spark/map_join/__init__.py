"""The second stage: ``prelaunch`` checks the descriptor, ``execution`` runs the statement once.

``texts`` are the texts that may run, and ``restricted_run`` runs one of them, if a key index needs
it on a ``branch`` of the table. ``group_filter`` leaves out what the index has found already.
``small_tables`` notices small tables that have changed since a worker read them. ``command`` runs a
statement that writes; ``partition_folder`` replaces one partition's folder, and ``job_attempt``
keeps the files of other jobs out of the table. Over Spark Connect, ``dynamic_overwrite`` lets Spark
replace the folder. ``nested_folders`` mends what two commits at once do to a new partition.
``table_reads`` counts what the statement read, and ``planned_scans`` the files that its plan has
chosen.
"""
