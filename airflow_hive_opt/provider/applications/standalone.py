"""Cluster mode on a Spark standalone cluster, which has none for Python by itself.

``spark-submit`` refuses it. So the master starts ``spark-submit`` as the driver, on one of its
workers, in client mode. The driver is then that worker's process, as in Spark's own example for
the master's REST API.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from airflow_hive_opt.documents.storage import write_atomically
from airflow_hive_opt.provider.airflow_compat import AirflowException, ObjectStoragePath
from airflow_hive_opt.provider.applications.cluster import NoAnswer
from airflow_hive_opt.provider.applications.following import run
from airflow_hive_opt.provider.applications.standalone_master import StandaloneMaster
from airflow_hive_opt.provider.submission import plain_uri

_FOLDER = "drivers"
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"


def in_cluster_mode(hook: Any) -> bool:
    """Whether the driver is to run on a worker of a standalone cluster."""
    return bool(hook._should_track_driver_status)


def shared(files: tuple[Path, ...], root: str) -> tuple[str, ...]:
    """Copies the driver's files below ``root``, which the cluster can read; returns their URIs.

    They stay there for other drivers. Raises ``DescriptorError``.
    """
    contents = [file.read_bytes() for file in files]
    digest = hashlib.sha256(b"".join(contents)).hexdigest()[:32]
    folder = ObjectStoragePath(root.rstrip("/")) / _FOLDER / digest
    for file, content in zip(files, contents, strict=True):
        if not (folder / file.name).exists():
            write_atomically(content, folder / file.name)
    return tuple(_for_spark(plain_uri(folder / file.name)) for file in files)


def submit(hook: Any, application: str, master: StandaloneMaster) -> str:
    """Submits the hook's application; returns the driver's ID. Raises ``AirflowException``."""
    try:
        return run(master.submit(_request(hook, application)))
    except NoAnswer as error:
        raise AirflowException(
            f"{error}. The master needs spark.master.rest.enabled=true, and the connection's extra "
            "its port as 'rest-port' if that is not 6066"
        ) from None


def _request(hook: Any, application: str) -> dict[str, Any]:
    """The master's request: the command of ``spark-submit`` as the driver's arguments."""
    arguments = hook._build_spark_submit_command(application)[1:]
    at = arguments.index("--deploy-mode")
    arguments[at + 1] = "client"
    own = {
        name: str(value) for name, value in hook._conf.items() if name.startswith("spark.driver.")
    }
    if hook._driver_memory:
        own["spark.driver.memory"] = hook._driver_memory
    return {
        "action": "CreateSubmissionRequest",
        "appResource": "",
        "mainClass": _SUBMIT,
        "appArgs": arguments,
        "clientSparkVersion": "",
        "environmentVariables": {},
        "sparkProperties": {
            **own,
            "spark.app.name": hook._name,
            "spark.driver.supervise": "false",  # Airflow retries
            "spark.master": hook._connection["master"],
            "spark.submit.deployMode": "cluster",
        },
    }


def _for_spark(uri: str) -> str:
    """The URI as Hadoop names it.

    >>> _for_spark("s3://lake/x"), _for_spark("file:///x")
    ('s3a://lake/x', 'file:///x')
    """
    return f"s3a{uri[2:]}" if uri.startswith("s3://") else uri
