"""The work of a stage, in counted calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Counts of metastore calls, fetched partitions and listed files."""

    metastore_calls: int = 0
    partitions_fetched: int = 0
    files_listed: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.metastore_calls + other.metastore_calls,
            self.partitions_fetched + other.partitions_fetched,
            self.files_listed + other.files_listed,
        )

    def __sub__(self, earlier: Work) -> Work:
        return Work(
            self.metastore_calls - earlier.metastore_calls,
            self.partitions_fetched - earlier.partitions_fetched,
            self.files_listed - earlier.files_listed,
        )
