"""Airflow operators.

``statement`` has the arguments and the run that the three operators share: ``map_join_prune``
prunes and joins in one task, ``local_task`` and ``map_join`` are the two tasks of the split form.
``key_index`` builds an index of a table's column.
``spark_application`` has what a task of Airflow's ``SparkKubernetesOperator`` needs.
``arguments`` checks arguments.
"""
