"""A statement as a ``SparkApplication`` of the Kubeflow Spark operator.

Three tasks run it, because Airflow's ``SparkKubernetesOperator`` runs any application and reads no
outcome. The first one calls :func:`write_job`. The second one is a ``SparkKubernetesOperator`` with
the fields of :func:`application_spec` in its spec. The third one calls :func:`read_outcome`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents import storage
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
)
from airflow_hive_opt.provider.attempts import checked_attempt_path, default_root
from airflow_hive_opt.provider.outcome import log_outcome, masked, publish, raise_unless_done
from airflow_hive_opt.provider.submission import for_driver, plain_uri

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

FOLDER = "/opt/airflow-hive-opt"
"""Where the image has the two files of ``airflow_hive_opt.spark.application.shipping``."""

log = logging.getLogger(__name__)


def write_job(
    context: Context, sql: str, *, descriptor_path: str | None = None, **fields: Any
) -> dict[str, str]:
    """Writes a job for a driver below ``descriptor_path`` and returns what the next tasks need.

    That is the job's ``uri``, the argument of the application, and ``path`` and ``token`` of its
    outcome. ``descriptor_path`` must be storage that the driver can reach; the default is
    ``[hive_opt] descriptor_path``. ``fields`` are others of
    ``airflow_hive_opt.documents.job.Job``, such as ``parameters``. Raises
    ``AirflowFailException`` for invalid values, and ``DescriptorError``.
    """
    from airflow_hive_opt.documents import job as documents  # late: it loads the parser
    from airflow_hive_opt.provider.key_indexes import index_path

    path = checked_attempt_path(descriptor_path or default_root(), context)
    fields = {"index_path": index_path(), **fields}
    try:
        job = for_driver(documents.Job(sql, str(path), **fields), path)
    except ValueError as error:
        raise AirflowFailException(masked(str(error))) from None
    uri = plain_uri(documents.write_job(job, path))
    return {"uri": uri, "path": str(path), "token": job.token}


def application_spec(
    job_uri: str, *, image: str, spark_version: str, folder: str = FOLDER
) -> dict[str, Any]:
    """The fields of a ``SparkApplication``'s spec that run the job at ``job_uri``.

    ``image`` has Spark of the version ``spark_version``, and in ``folder`` the files ``main.py``
    and ``airflow_hive_opt.zip``. Add fields such as ``sparkConf``, ``driver`` and ``executor``.
    """
    return {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "image": image,
        "sparkVersion": spark_version,
        "mainApplicationFile": f"local://{folder}/main.py",
        "arguments": [job_uri],
        "deps": {"pyFiles": [f"local://{folder}/airflow_hive_opt.zip"]},
        # Airflow retries. A restart would run a failed INSERT again without anybody seeing it.
        "restartPolicy": {"type": "Never"},
    }


def read_outcome(context: Context, written: Mapping[str, str]) -> dict[str, Any]:
    """Logs the outcome of the job that :func:`write_job` wrote, and returns its summary.

    Raises the same exceptions as the operators if the job did not finish its work, and
    ``AirflowFailException`` if there is no outcome. An error of the storage is an
    ``AirflowException``, as a retry reads again.
    """
    from airflow_hive_opt.documents import job as documents

    try:
        outcome = documents.read_outcome(ObjectStoragePath(written["path"]), written["token"])
    except documents.NO_OUTCOME as error:
        raise AirflowFailException(
            f"the application wrote no outcome, and the statement may have run: {error}. See the "
            "driver's log. This task and the driver must both reach the storage of descriptor_path"
        ) from None
    except storage.DescriptorError as error:
        raise AirflowException(
            f"the outcome can't be read now: {error}. This task and the driver must both reach the "
            "storage of descriptor_path"
        ) from None
    publish(log, context["ti"], outcome, decided=True)
    log_outcome(log, outcome)
    raise_unless_done(log, outcome)
    return {**(outcome.summary or {}), "uri": written["path"]}
