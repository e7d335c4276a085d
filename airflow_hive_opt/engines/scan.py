"""What an engine needs to know of the scans of one table, from a descriptor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from upath import UPath

from airflow_hive_opt.documents.binding import TIME_ZONE
from airflow_hive_opt.documents.descriptor import Descriptor, RowFilter, Target, read
from airflow_hive_opt.metastores.partitions import Partition


class EngineError(Exception):
    """An engine can't use a descriptor; the message says why and what to do, in one line."""


@dataclass(frozen=True)
class PrunedScan:
    """The part of a table that the statement of a descriptor reads, in all its scans together.

    - ``table`` is the table as in the descriptor, ``location`` the URI of its folder, if known.
    - ``columns`` and ``types`` are the partition columns in a metastore and their Hive types.
      ``pruned_columns`` are those by which partitions were left out.
    - ``partitions`` are the partitions to read; ``None`` if they are not restricted. An empty list
      means that no row is needed.
    - ``alternatives`` restrict other columns: a row counts if it fulfils all conditions of one of
      them. Empty means no restriction.
    - ``lists_files`` says that the table keeps its own list of files, as Iceberg's and Delta's do.
    - ``time_zone`` is that of Spark's session, in which the texts of TIMESTAMP partitions are.
    """

    table: str
    location: str | None
    columns: tuple[str, ...]
    types: tuple[str, ...]
    pruned_columns: tuple[str, ...]
    partitions: tuple[Partition, ...] | None
    alternatives: tuple[tuple[RowFilter, ...], ...]
    lists_files: bool
    time_zone: str | None = None


def pruned_scan(output: Mapping[str, Any], table: str, time_zone: str | None = None) -> PrunedScan:
    """The part of ``table`` to read, from the output of a ``LocalTaskOperator`` (its XCom).

    The other arguments are those of :func:`scan_of`. Raises :class:`EngineError`, and
    :class:`~airflow_hive_opt.documents.storage.DescriptorError` for a file that is not there, not
    sealed, or another attempt's.
    """
    if not isinstance(output, Mapping) or not {"uri", "digest", "query_digest"} <= output.keys():
        raise EngineError(f"this is not the output of a LocalTaskOperator: {str(output)[:100]!a}")
    descriptor = read(UPath(output["uri"]), output["query_digest"], output["digest"])
    return scan_of(descriptor, table, time_zone)


def scan_of(descriptor: Descriptor, table: str, time_zone: str | None = None) -> PrunedScan:
    """The part of ``table`` that a descriptor's statement reads.

    ``table`` is ``database.table``, or ``catalog.database.table`` for a table of another catalog.
    ``time_zone`` is for descriptors that do not have that of Spark's session: a worker's. Raises
    :class:`EngineError` if the statement does not read the table, or reads all of it in one place.
    """
    name = table.lower()
    decisions = [found for found in descriptor.decisions if found.scan.table.lower() == name]
    if not decisions:
        raise EngineError(_without(descriptor, table))
    targets = {found.scan: found for found in descriptor.targets}
    filters: dict[object, list[RowFilter]] = {}
    for found in descriptor.row_filters:
        filters.setdefault(found.scan, []).append(found)
    scans = [decision.scan for decision in decisions]
    for decision in decisions:
        if decision.scan not in targets and decision.scan not in filters:
            raise EngineError(
                f"{table} is read whole as {decision.scan.name}, {decision.reason}: "
                f"{decision.message}"
            )
    listed = [targets[scan] for scan in scans if scan in targets]
    partitions = _union(listed) if len(listed) == len(scans) else None
    restricted = all(scan in filters for scan in scans)
    settings = descriptor.binding.settings if descriptor.binding else {}
    first = listed[0] if listed else None
    return PrunedScan(
        table=decisions[0].scan.table,
        location=first.location if first else None,
        columns=first.columns if first else (),
        types=first.types if first else (),
        pruned_columns=_pruned(listed),
        partitions=partitions,
        alternatives=tuple(tuple(filters[scan]) for scan in scans) if restricted else (),
        lists_files=any(found.scan in scans for found in descriptor.planned_files),
        time_zone=settings.get(TIME_ZONE) or time_zone,
    )


def _union(targets: Sequence[Target]) -> tuple[Partition, ...]:
    """The partitions of all targets, each once, with its location if one of them has it."""
    found: dict[tuple[str | None, ...], Partition] = {}
    for target in targets:
        for partition in target.partitions:
            if partition.location is not None or partition.values not in found:
                found[partition.values] = partition
    return tuple(found.values())


def _pruned(targets: Sequence[Target]) -> tuple[str, ...]:
    pruned = {name for target in targets for name in target.pruned_columns}
    return tuple(name for name in (targets[0].columns if targets else ()) if name in pruned)


def _without(descriptor: Descriptor, table: str) -> str:
    """Why the descriptor says nothing of the table."""
    for decision in descriptor.decisions:
        if not decision.scan.table:  # the decision for the whole statement
            return f"the descriptor has no list, {decision.reason}: {decision.message}"
    known = ", ".join(sorted({found.scan.table for found in descriptor.decisions}))
    return f"the descriptor has no partitions of {table}; it is of {known or 'no such table'}"
