"""Where one attempt of one task writes: a path that no other attempt shares."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from airflow.sdk import ObjectStoragePath

if TYPE_CHECKING:
    from airflow.sdk import Context


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


def safe_part(name: str) -> str:
    """One path part from an Airflow id.

    >>> safe_part("sales")
    'sales'
    >>> safe_part("manual__2026-01-31T00:00:00+00:00")
    'manual__2026-01-31T00-00-00-00-00-7fd99edd'
    """
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".") or "-"
    if safe == name:
        return safe
    return f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
