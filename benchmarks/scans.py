"""Counts the partitions that each scan of a partitioned table reads, from Spark's own metrics."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.spark_compat import items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCAN = re.compile(r"^Scan \w+ (?:\w+\.)*(\w+)$")
_METRIC = "number of partitions read"


class ScanCounter:
    """The scans of the statements that ran since the counter was made or last read."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = session.sparkContext._jsc.sc()
        self._store: Any = session._jsparkSession.sharedState().statusStore()  # type: ignore[attr-defined]
        self._seen = self._newest()

    def read(self) -> dict[str, list[int]]:
        """By table, the partitions that each of its scans read, in ascending order."""
        self._context.listenerBus().waitUntilEmpty()
        found: dict[str, list[int]] = defaultdict(list)
        since, self._seen = self._seen, self._newest()
        for execution in items(self._store.executionsList()):
            if execution.executionId() > since:
                for table, partitions in self._scans(execution.executionId()):
                    found[table].append(partitions)
        return {table: sorted(counts) for table, counts in sorted(found.items())}

    def _scans(self, execution: int) -> list[tuple[str, int]]:
        values = self._store.executionMetrics(execution)
        found = []
        for node in items(self._store.planGraph(execution).allNodes()):
            named = _SCAN.match(node.name())
            for metric in items(node.metrics()) if named else ():
                if metric.name() == _METRIC and named:
                    text = values.get(metric.accumulatorId())
                    read = text.get() if text.isDefined() else "0"
                    found.append((named.group(1), int(str(read).replace(",", "").split()[0])))
        return found

    def _newest(self) -> int:
        every = [each.executionId() for each in items(self._store.executionsList())]
        return max(every, default=-1)
