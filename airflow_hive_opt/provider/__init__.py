"""What Airflow's operators, sensors, links and pages share.

``airflow_compat`` is the only place for what differs between versions of Airflow.
"""
