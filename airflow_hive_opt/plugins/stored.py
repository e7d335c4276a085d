"""The documents that a task instance has written, read from storage for its pages.

The API server may read any storage. It therefore reads only below ``[hive_opt] descriptor_path`` of
its own configuration, and only the paths of the run that the viewer asked for.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow_hive_opt.pages.models import Whereabouts
from airflow_hive_opt.provider.airflow_compat import ObjectStoragePath, conf
from airflow_hive_opt.provider.attempts import instance_path, is_of_run
from airflow_hive_opt.runtime.descriptor import Descriptor, DescriptorError, load
from airflow_hive_opt.runtime.report import StoredReport, read_report, report_path
from airflow_hive_opt.runtime.storage import NothingThereError

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
        root = _root()
        if not root or not is_of_run(uri, root, dag_id, run_id):
            raise NotShownError(
                "outside",
                "only descriptors below [hive_opt] descriptor_path of the API server's "
                f"configuration that a task of this run wrote are shown, not {uri[:300]!a}",
            )
        return load(ObjectStoragePath(uri))
    except NothingThereError:
        raise NotShownError(
            "deleted",
            "the partition descriptor is not there: it was deleted, or [hive_opt] descriptor_path "
            "is a folder of another machine",
        ) from None
    except (DescriptorError, ValueError, ImportError):
        log.warning("a descriptor of %s can't be shown", dag_id, exc_info=True)
        raise NotShownError(
            "unreadable",
            "the partition descriptor can't be read: it was changed or another version of this "
            "package wrote it, or the API server can't read the storage of [hive_opt] "
            "descriptor_path. See the API server's log",
        ) from None


def report_of(
    dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int
) -> StoredReport | None:
    """The report of a task instance's attempt; ``None`` if it can't be read."""
    root = _root()
    if not root:
        return None
    try:
        at: Any = instance_path(root, dag_id, run_id, task_id, map_index, try_number)
        return read_report(report_path(at))
    except (DescriptorError, ValueError, ImportError) as error:
        log.debug("a report of %s can't be shown: %s", dag_id, error)
        return None


def _root() -> str:
    return str(conf.get("hive_opt", "descriptor_path", fallback=""))
