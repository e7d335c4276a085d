"""The documents that a task instance has written, read from storage for its pages.

The API server may read any storage. It therefore reads only below ``[hive_opt] descriptor_path`` of
its own configuration, by default a folder in its ``AIRFLOW_HOME``, and only the paths of the run
that the viewer asked for.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow_hive_opt.documents.descriptor import Descriptor, DescriptorError, load
from airflow_hive_opt.documents.report import StoredReport, read_report, report_path
from airflow_hive_opt.documents.storage import NothingThereError
from airflow_hive_opt.pages.models import Whereabouts
from airflow_hive_opt.provider.airflow_compat import ObjectStoragePath, conf
from airflow_hive_opt.provider.attempts import default_root, instance_path, is_of_run

log = logging.getLogger(__name__)


class NotShownError(Exception):
    """The descriptor can't be shown. ``where`` says why; the server's log says more."""

    def __init__(self, where: Whereabouts, message: str) -> None:
        super().__init__(message)
        self.where = where


def descriptor_at(uri: str, dag_id: str, run_id: str) -> Descriptor:
    """The descriptor at ``uri`` if a task of this run wrote it.

    Whoever writes XComs could name any other file. A map join names the descriptor of its local
    task, which is another task of the same run. Raises :class:`NotShownError`.
    """
    try:
        root = default_root()
        if not is_of_run(uri, root, dag_id, run_id):
            raise NotShownError(
                "outside",
                f"the API server shows only partition lists below {root}, its [hive_opt] "
                f"descriptor_path, that a task of this run wrote. This one is at {uri[:300]!a}: "
                "use the same [hive_opt] descriptor_path for tasks and API server",
            )
        return load(ObjectStoragePath(uri))
    except NothingThereError:
        raise _not_there() from None
    except (DescriptorError, ValueError, ImportError):
        log.warning("a descriptor of the DAG %s can't be shown", dag_id, exc_info=True)
        raise NotShownError(
            "unreadable",
            "the partition list can't be read: it was changed or another version of this "
            "package wrote it, or the API server can't read the storage of [hive_opt] "
            "descriptor_path. See the API server's log",
        ) from None


def report_of(
    dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int
) -> StoredReport | None:
    """The report of a task instance's attempt; ``None`` if it can't be read."""
    try:
        at: Any = instance_path(default_root(), dag_id, run_id, task_id, map_index, try_number)
        return read_report(report_path(at))
    except (DescriptorError, ValueError, ImportError) as error:
        log.debug("a report of the DAG %s can't be shown: %s", dag_id, error)
        return None


def _not_there() -> NotShownError:
    if conf.get("hive_opt", "descriptor_path", fallback=""):
        return NotShownError(
            "deleted",
            "the partition list is not there: it was deleted, or [hive_opt] descriptor_path is a "
            "folder of another machine",
        )
    return NotShownError(
        "elsewhere",
        "the partition list is not on the API server's machine: it is on the disk of the worker "
        "that ran the task, or it was deleted. If Airflow runs on several machines, set "
        "[hive_opt] descriptor_path to a folder or an object store that all of them reach",
    )
