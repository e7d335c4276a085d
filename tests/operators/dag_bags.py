"""DAG files as Airflow's DAG processor reads them, in every supported version."""

from __future__ import annotations

try:
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
except ImportError:  # before Airflow 3.2
    from airflow.models import dagbag
    from airflow.models.dagbag import DagBag

    def sync_bag_to_db(bag: DagBag, bundle_name: str, bundle_version: str) -> None:
        if hasattr(dagbag, "sync_bag_to_db"):  # Airflow 3.1
            dagbag.sync_bag_to_db(bag, bundle_name, bundle_version)
        else:
            bag.sync_to_db(bundle_name, bundle_version)


__all__ = ("DagBag", "sync_bag_to_db")
