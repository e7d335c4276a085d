"""Keys that the next runs of a task leave out, as a part of the descriptor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SkippedKeys:
    """Keys that are not worth reading, by the digest of their queries and conditions.

    ``runs`` is the number of runs in a row that did not read them.
    """

    digest: str
    runs: int
