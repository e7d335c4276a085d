"""Links on a task instance's page: ``pages`` to the run's page, ``spark_ui`` to Spark's own."""
