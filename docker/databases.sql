-- Beside Airflow's own database, which POSTGRES_DB makes.
CREATE DATABASE metastore;
