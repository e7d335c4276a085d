"""Code that Airflow's operators, sensors, links and pages share.

Only ``airflow_compat`` handles the differences between versions of Airflow.
"""
