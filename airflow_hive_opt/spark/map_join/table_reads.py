"""What a statement read of each table, from the metrics of Spark's own scans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_hive_opt.documents.report import TableRead
from airflow_hive_opt.spark.catalog.lakes.delta import path_read
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.session.physical_operators import leaves

_SCANS = ("FileSourceScanExec", "HiveTableScanExec", "BatchScanExec")
# A scan's name in the metrics of Spark Connect.
_NAMED = re.compile(r"Scan \w+ (?:spark_catalog\.)?([^.\s]+\.[^.\s]+)")
_NAMED_BATCH = re.compile(r"BatchScan (\S+)")
_METRICS = {"partitions": "numPartitions", "files": "numFiles", "bytes": "filesSize"}
_OF_ICEBERG = {"partitions": "", "files": "resultDataFiles", "bytes": "totalDataFileSize"}


def table_reads(plan: Any, catalog: SessionCatalog) -> tuple[TableRead, ...]:
    """The partitions, files and bytes that a plan has read, one entry for each table.

    ``plan`` is the JVM's, or over Spark Connect what ``connect_frames.plan_metrics`` returns. The
    scans of a table are added up. A number is ``None`` if Spark does not count it, as for Hive's
    SerDes. Raises the errors of Spark and of its metastore.
    """
    found: dict[str, dict[str, int | None]] = {}
    for name, read in _named(plan) if isinstance(plan, tuple) else _scans(plan):
        before = found.get(name)
        found[name] = read if before is None else _sum(before, read)
    return tuple(
        TableRead(name, total_bytes=_size(catalog, name), **counts)
        for name, counts in found.items()
    )


def _scans(plan: Any) -> Iterator[tuple[str, dict[str, int | None]]]:
    """The scans of tables in a plan of the JVM."""
    for kind, operator in leaves(plan):
        if kind in _SCANS and (name := table_of(kind, operator)):
            yield name, _counted(operator, _OF_ICEBERG if kind == "BatchScanExec" else _METRICS)


def _named(
    plan: tuple[tuple[str, Mapping[str, int]], ...],
) -> Iterator[tuple[str, dict[str, int | None]]]:
    """The scans of tables among operators with their metrics."""
    for operator, metrics in plan:
        if found := _NAMED.fullmatch(operator.strip()):
            yield found[1], {name: metrics.get(metric) for name, metric in _METRICS.items()}
        elif (found := _NAMED_BATCH.match(operator)) and _OF_ICEBERG["files"] in metrics:
            yield found[1], {name: metrics.get(metric) for name, metric in _OF_ICEBERG.items()}


def table_of(kind: str, operator: Any) -> str | None:
    """``database.table`` of a scan; ``None`` for files that are no table."""
    if kind == "BatchScanExec":
        iceberg = operator.metrics().contains(_OF_ICEBERG["files"])
        return str(operator.table().name()) if iceberg else None
    if kind == "HiveTableScanExec":
        identifier = operator.relation().tableMeta().identifier()
    elif (given := operator.tableIdentifier()).isDefined():
        identifier = given.get()
    else:
        return path_read(operator.relation())
    database = identifier.database()
    return f"{database.get()}.{identifier.table()}" if database.isDefined() else None


def _counted(operator: Any, names: Mapping[str, str]) -> dict[str, int | None]:
    metrics = operator.metrics()
    found: dict[str, int | None] = {}
    for name, metric in names.items():
        given = metrics.get(metric)
        found[name] = int(given.get().value()) if given.isDefined() else None
    return found


def _sum(one: Mapping[str, int | None], other: Mapping[str, int | None]) -> dict[str, int | None]:
    added: dict[str, int | None] = {}
    for name, count in one.items():
        more = other[name]
        added[name] = None if count is None or more is None else count + more
    return added


def _size(catalog: SessionCatalog, name: str) -> int | None:
    table = catalog.table(name)
    return None if table is None else table.total_bytes
