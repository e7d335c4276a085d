"""Finds the files of old attempts and key sets, so that a cleaning job can delete them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from airflow_hive_opt.documents.storage import (
    KEY_SETS,
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    StoragePath,
)

# <root>/<dag>/<run>/<task>/<map index>/<try>[.report|.keys|.job|.begun|.outcome|.partitions].json,
# or <try>[.guarded].sql there; a hook's further statements are <try>.<number>. claim.json and
# operation.json there are of all tries.
_OWN = re.compile(
    r"-?\d+/((claim|operation)\.json|\d+(\.\d+)?(\.(report|keys|job|begun|outcome|partitions))?\.json|"
    r"\d+(\.guarded)?\.sql|"
    rf"{re.escape(TEMPORARY_PREFIX)}[0-9a-f]+{re.escape(TEMPORARY_SUFFIX)})"
)
_OF_KEY_SET = re.compile(
    r"[0-9a-f]{32}\.json|"
    rf"{re.escape(TEMPORARY_PREFIX)}[0-9a-f]+{re.escape(TEMPORARY_SUFFIX)}"
)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def age(text: str) -> timedelta:
    """Parses an age such as ``36h``; raises ``ValueError`` for any other form.

    >>> str(age("36h")), str(age("30d")), str(age("2w"))
    ('1 day, 12:00:00', '30 days, 0:00:00', '14 days, 0:00:00')
    """
    found = re.fullmatch(r"(\d+)([hdw])", text.strip())
    if found is None:
        raise ValueError(f"an age is a number and h, d or w, such as 30d, not {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def older_than(root: StoragePath, limit: timedelta, now: datetime) -> Iterator[StoragePath]:
    """The files of attempts and key sets under ``root``, last written before ``now - limit``.

    They include temporary files of unfinished writes, but no files with other names or at other
    depths. Raises ``OSError``.
    """
    for pattern in ("*.json", "*.sql", f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"):
        for path in root.glob(f"*/*/*/*/{pattern}"):
            own = _OWN.fullmatch("/".join(path.parts[-2:]))
            if own and (written := _written(path)) and written < now - limit:
                yield path
    for pattern in ("*.json", f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"):
        for path in root.glob(f"{KEY_SETS}/*/*/{pattern}"):
            own = _OF_KEY_SET.fullmatch(path.name)
            if own and (written := _written(path)) and written < now - limit:
                yield path


def _written(path: StoragePath) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    except FileNotFoundError:  # a write has renamed its temporary file meanwhile
        return None
