"""The embedded warehouse: tables and a Derby metastore in a folder, as Spark's settings.

It loads no PySpark: a task reads these settings before it knows whether it needs Spark.
"""

from __future__ import annotations

import os
from pathlib import Path

WAREHOUSE_DIR = "spark.sql.warehouse.dir"
_WAREHOUSE_VARIABLE = "AIRFLOW_HIVE_OPT_WAREHOUSE"
_DERBY_URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
_FILTER_HOOK = (
    "org.apache.hadoop.hive.ql.security.authorization.plugin.AuthorizationMetaStoreFilterHook"
)


def default_warehouse() -> Path:
    """The embedded warehouse's folder, ``$AIRFLOW_HIVE_OPT_WAREHOUSE`` or in the home folder."""
    named = os.environ.get(_WAREHOUSE_VARIABLE)
    return Path(named) if named else Path.home() / ".airflow-hive-opt" / "warehouse"


def embedded_conf(warehouse: Path, master: str = "local[*]") -> dict[str, str]:
    """Spark's settings for an embedded warehouse: tables and a Derby metastore in one folder."""
    folder = warehouse.absolute()
    return {
        "spark.master": master,
        WAREHOUSE_DIR: str(folder / "tables"),
        _DERBY_URL: f"jdbc:derby:;databaseName={folder / 'metastore_db'};create=true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        # Derby's stack overflows at about 600 values in one filter. Above this setting Spark uses
        # a range and, if that filter fails too, fetches all partitions: slower, but never wrong.
        "spark.sql.hive.metastorePartitionPruningInSetThreshold": "400",
        "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
        # Dynamic partitions in INSERT OVERWRITE, as Hive users expect them.
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        # Hive sets this hook when it first needs the user's name, then closes the connection to the
        # metastore because a setting has changed, and the call that is about to be sent fails.
        "spark.hadoop.hive.metastore.filter.hook": _FILTER_HOOK,
    }
