"""Seconds and work by phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.spark.session.best_effort import best_effort


class Clock:
    """Seconds and metastore work of each phase; the work is ``None`` if it is not known."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.work: dict[str, Work | None] = {}

    @contextmanager
    def phase(self, name: str, work: Callable[[], Work | None]) -> Iterator[None]:
        """Measures the block and stores the figures under ``name``; ``work`` counts so far."""
        began, before = time.monotonic(), work()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - began
            after = best_effort(work)
            self.work[name] = after - before if after and before else None
