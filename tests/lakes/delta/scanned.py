"""The files that a statement read of a table, by the metrics of Spark's scans.

Delta runs MERGE as queries of its own, which are no part of the statement's plan. Iceberg's scans
have another name and another metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_METRICS = ("number of files read", "number of result data files")


def files_read(session, table: str, run: Callable[[], Any]) -> list[int]:
    """The number of files of each scan of ``table`` while ``run`` runs, in Spark's order."""
    store = session._jsparkSession.sharedState().statusStore()
    _wait(session)
    before = {number for number, _ in _executions(store)}
    run()
    _wait(session)
    found = []
    for number, _ in _executions(store):
        if number not in before:
            found += _scans(store, number, table)
    return found


def _wait(session) -> None:
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def _executions(store: Any) -> Iterator[tuple[int, Any]]:
    listed = store.executionsList()
    for at in range(listed.size()):
        each = listed.apply(at)
        yield each.executionId(), each


def _scans(store: Any, number: int, table: str) -> Iterator[int]:
    values = store.executionMetrics(number)
    nodes = store.planGraph(number).allNodes()
    for at in range(nodes.size()):
        node = nodes.apply(at)
        if not node.name().startswith(("Scan", "BatchScan")) or not node.name().endswith(table):
            continue
        metrics = node.metrics()
        for metric in (metrics.apply(each) for each in range(metrics.size())):
            told = values.get(metric.accumulatorId()) if metric.name() in _METRICS else None
            if told is not None and told.isDefined():
                yield int(told.get().replace(",", ""))
