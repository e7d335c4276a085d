"""The work of a stage, in counted calls."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add, sub


@dataclass(frozen=True)
class Work:
    """Counts of metastore calls, fetched partitions and listed files."""

    metastore_calls: int = 0
    partitions_fetched: int = 0
    files_listed: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*map(add, astuple(self), astuple(other)))

    def __sub__(self, earlier: Work) -> Work:
        return Work(*map(sub, astuple(self), astuple(earlier)))
