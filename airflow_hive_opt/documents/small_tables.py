"""The small tables as a worker has read them, so that a session notices if they have changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class SmallTable:
    """A small table that a worker has read.

    ``folders`` has pairs of a location and the :func:`digest_of_files` there. ``partitions`` is the
    digest of the values of all partitions, ``None`` for a table without partitions.
    """

    name: str
    folders: tuple[tuple[str, str], ...]
    partitions: Optional[str] = None


def digest_of_files(files: Iterable[tuple[str, int, int]]) -> str:
    """SHA-256 of the files' names, bytes and last changes (seconds since 1970), in any order.

    Hidden and empty files have no rows and do not count.

    >>> files = [("part-0", 7, 1700000000), ("_SUCCESS", 0, 1700000001)]
    >>> digest_of_files(files) == digest_of_files(files[:1])
    True
    """
    data = sorted(file for file in files if file[1] and not file[0].startswith(("_", ".")))
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()
