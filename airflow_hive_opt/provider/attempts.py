"""Where one attempt of one task writes: a path that no other attempt shares."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import AirflowFailException, ObjectStoragePath, conf

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

_LONGEST_PART = 200
# <task>/<map index>/<try>.json, the task's part as safe_part makes it
_IN_RUN = r"[A-Za-z0-9_-][A-Za-z0-9_.-]*/-?[0-9]+/[0-9]+\.json"


def default_root() -> str:
    """Where attempts write unless their task says so."""
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    configured = conf.get("hive_opt", "descriptor_path", fallback="")
    return str(configured or home / "hive_opt_descriptors")


def attempt_path(root: str, context: Context) -> ObjectStoragePath:
    """``root/dag/run/task/map index/try.json``, each part safe for any storage.

    ``root`` is a local folder or an object storage URI. Run ids hold colons, which HDFS forbids,
    and dag ids may be alike but for such characters, so a changed part gets a short hash.
    """
    instance: Any = context["ti"]
    map_index = getattr(instance, "map_index", -1)
    parts = [
        safe_part(instance.dag_id),
        safe_part(instance.run_id),
        safe_part(instance.task_id),
        str(map_index if map_index is not None else -1),
        f"{instance.try_number}.json",
    ]
    return ObjectStoragePath(root.rstrip("/")).joinpath(*parts)


def checked_attempt_path(root: str, context: Context) -> ObjectStoragePath:
    """:func:`attempt_path`; raises ``AirflowFailException`` for a root that can't be used."""
    try:
        return attempt_path(root, context)
    except (ValueError, ImportError) as error:
        raise AirflowFailException(f"descriptor_path {root!r} can't be used: {error}") from None


def safe_part(name: str) -> str:
    """One path part from an Airflow id.

    Ids may have 250 characters, and file systems take names of 255 bytes, so long ones are cut.

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
    # What stands in front may be the same for many, so the hash alone must tell them apart.
    return f"{safe[: _LONGEST_PART - 33]}-{digest[:32]}"


def attempt_token(context: Context) -> str | None:
    """What names one try of one task instance for good; ``None`` where the context does not say.

    A run that is deleted and made again has the paths of the first one, but not its tokens.
    """
    found = getattr(context["ti"], "id", None)
    return None if found is None else str(found)


def is_of_run(uri: str, root: str, dag_id: str, run_id: str) -> bool:
    """Whether ``uri`` is the :func:`attempt_path` under ``root`` of any task of this run."""
    run = ObjectStoragePath(root.rstrip("/")).joinpath(safe_part(dag_id), safe_part(run_id))
    return re.fullmatch(re.escape(f"{run}/") + _IN_RUN, uri) is not None
