"""The path that one attempt of one task writes to; no other attempt uses it."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.storage import KEY_SETS
from airflow_hive_opt.provider.airflow_compat import AirflowFailException, ObjectStoragePath, conf

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

_LONGEST_PART = 200
_FOLDER = re.compile(r"/|[a-z][a-z0-9+.-]*://")
# <task>/<map index>/<try>.json; safe_part makes the task's part
_IN_RUN = r"[A-Za-z0-9_-][A-Za-z0-9_.-]*/-?[0-9]+/[0-9]+\.json"


def default_root() -> str:
    """The folder for all attempts, unless a task sets another one."""
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    configured = conf.get("hive_opt", "descriptor_path", fallback="")
    return str(configured or home / "hive_opt_descriptors")


def attempt_path(root: str, context: Context) -> ObjectStoragePath:
    """``root/dag/run/task/map index/try.json``, each part safe for any storage.

    ``root`` is a local folder or an object storage URI. Run IDs contain colons, which HDFS forbids.
    Such characters are replaced, and a changed part gets a short hash, because IDs may differ in
    these characters only.
    """
    instance: Any = context["ti"]
    map_index = getattr(instance, "map_index", -1)
    return instance_path(
        root,
        instance.dag_id,
        instance.run_id,
        instance.task_id,
        map_index if map_index is not None else -1,
        instance.try_number,
    )


def instance_path(
    root: str, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int
) -> ObjectStoragePath:
    """:func:`attempt_path` of one attempt of a task instance."""
    ids = map(safe_part, (dag_id, run_id, task_id))
    return ObjectStoragePath(root.rstrip("/")).joinpath(*ids, str(map_index), f"{try_number}.json")


def checked_attempt_path(root: str, context: Context) -> ObjectStoragePath:
    """Like :func:`attempt_path`; raises ``AirflowFailException`` for an unusable root."""
    try:
        return attempt_path(root, context)
    except (ValueError, ImportError) as error:
        raise AirflowFailException(f"descriptor_path {root!r} can't be used: {error}") from None


def key_sets_folder(given: str, root: str, context: Context) -> str:
    """The URI of the folder of a key set.

    ``given`` is a name, for ``root/key_sets/dag/name``, which all runs of the DAG share, or the
    folder itself. Raises ``AirflowFailException`` if it is neither.
    """
    if not given.strip() or ("/" in given and not _FOLDER.match(given)):
        raise AirflowFailException(
            f"key_sets must be a name, an absolute path or a URI, not {given!r}"
        )
    try:
        if "/" in given:
            folder = ObjectStoragePath(given.rstrip("/"))
            folder.fs  # noqa: B018 - before Airflow 3.1, only this fails for an unknown scheme
            return str(folder)
        instance: Any = context["ti"]
        ids = map(safe_part, (instance.dag_id, given))
        return str(ObjectStoragePath(root.rstrip("/")).joinpath(KEY_SETS, *ids))
    except (ValueError, ImportError) as error:
        raise AirflowFailException(f"key_sets {given!r} can't be used: {error}") from None


def safe_part(name: str) -> str:
    """One path part from an Airflow ID.

    IDs may have 250 characters and file systems allow names of 255 bytes, so long IDs are cut.

    >>> safe_part("sales")
    'sales'
    >>> safe_part("manual__2026-01-31T00:00:00+00:00")
    'manual__2026-01-31T00-00-00-00-00-7fd99edd'
    """
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".") or "-"
    digest = hashlib.sha256(name.encode()).hexdigest()
    if safe != name:
        safe = f"{safe}-{digest[:8]}"
    if len(safe) <= _LONGEST_PART:
        return safe
    # Many IDs may have the same beginning, so the hash alone must distinguish them.
    return f"{safe[: _LONGEST_PART - 33]}-{digest[:32]}"


def attempt_token(context: Context) -> str | None:
    """A permanent ID of one try of one task instance; ``None`` if the context has none.

    A run that is deleted and created again has the same paths as before, but other tokens.
    """
    found = getattr(context["ti"], "id", None)
    return None if found is None else str(found)


def cause_of(context: Context) -> str:
    """What a retry has in common with the attempt before it, and a cleared task has not.

    A clear sets ``max_tries`` to the number of attempts before it, and ``retries`` more. It also
    raises the run's ``clear_number``, but so do clears of other tasks. A run that is deleted and
    created again has another start.
    """
    instance: Any = context["ti"]
    retries = getattr(getattr(instance, "task", None), "retries", None) or 0
    started = getattr(context.get("dag_run"), "start_date", None)
    before = getattr(instance, "max_tries", 0) - retries
    return f"{before}_{started.timestamp():.6f}" if started else str(before)


def is_of_run(uri: str, root: str, dag_id: str, run_id: str) -> bool:
    """Whether ``uri`` is the :func:`attempt_path` under ``root`` of any task of this run."""
    run = ObjectStoragePath(root.rstrip("/")).joinpath(safe_part(dag_id), safe_part(run_id))
    return re.fullmatch(re.escape(f"{run}/") + _IN_RUN, uri) is not None
