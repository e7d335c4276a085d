"""What passes between the stages: partitions, the descriptor, the report. No Spark, no Airflow."""
