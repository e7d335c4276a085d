"""The ID by which a cluster knows the driver in this process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's default of spark.deploy.driverIdPattern, with the time at which the master got it
_ON_STANDALONE = re.compile(r"driver-\d{14}-\d{4,}")


def id_on_cluster(session: SparkSession, application_id: Optional[str]) -> Optional[str]:
    """The driver's ID in cluster mode on a standalone cluster, else ``application_id``.

    No setting has it. But a worker starts a driver in a folder whose name is the driver's ID
    (Spark's ``DriverRunner``).
    """
    try:
        name = Path.cwd().name
    except OSError:  # the folder has been deleted
        return application_id
    if not _ON_STANDALONE.fullmatch(name):
        return application_id
    is_on_standalone = (session.conf.get("spark.master") or "").startswith("spark://")
    return name if is_on_standalone else application_id
