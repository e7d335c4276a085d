-- The metastore's database. POSTGRES_DB creates Airflow's own database.
CREATE DATABASE metastore;
