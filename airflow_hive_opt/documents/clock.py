"""Measures each phase of a run: its seconds, metastore calls and fetched partitions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.metastores.work import Work


class Clock:
    """Seconds and metastore work of each phase; the work is ``None`` if it is not known."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.work: dict[str, Work | None] = {}

    def add(self, summary: Mapping[str, Any] | None) -> None:
        """Adds the phases of a stage that has run elsewhere, from its report's summary."""
        for name, seconds in (summary or {}).get("seconds", {}).items():
            work = (summary or {})["work"].get(name)
            self.seconds[name], self.work[name] = seconds, Work(**work) if work else None

    @contextmanager
    def phase(self, name: str, work: Callable[[], Work | None]) -> Iterator[None]:
        """Measures the block under ``name``; ``work`` returns the metastore work so far."""
        began, before = time.monotonic(), work()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - began
            after = best_effort(work)
            self.work[name] = after - before if after and before else None
