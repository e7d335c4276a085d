"""Notices small tables that have changed since a worker has read their keys.

A run on Spark reads the keys again in this case. Another engine could miss rows of new keys.
"""

from __future__ import annotations

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.small_tables import digest_of_files
from airflow_hive_opt.engines.files import OpenPath, open_uri
from airflow_hive_opt.engines.scan import EngineError
from airflow_hive_opt.worker.files.folder import listed_files
from airflow_hive_opt.worker.unanswered import Unanswered


def check_unchanged(descriptor: Descriptor, open_path: OpenPath = open_uri) -> None:
    """Raises :class:`EngineError` if a small table has other files than when its keys were read.

    It compares the folders that the worker has read. It does not notice a new partition of a small
    table, and knows nothing of keys that Spark has read.
    """
    for table in descriptor.small_tables:
        for location, digest in table.folders:
            try:
                files = listed_files(open_path(location))
            except Unanswered as why:
                raise EngineError(f"the small table {table.name} can't be checked: {why}") from None
            if digest_of_files((file.name, file.size, file.changed) for file in files) != digest:
                raise EngineError(
                    f"the keys are refused: the small table {table.name} has changed since they "
                    "were read. Run the local task again"
                )
