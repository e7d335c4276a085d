"""The conditions by key indexes in a descriptor, and the descriptor without them.

They are true for one snapshot of a table. A query reads that snapshot (``held_scans``). A statement
that changes rows must not have them unless it runs on a branch that begins there: the table's other
snapshots may have the same keys in other files.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from airflow_hive_opt.documents.descriptor import Descriptor, PlannedFiles, RowFilter
from airflow_hive_opt.documents.indexed_scans import HeldTable, IndexCode, IndexUse


def filters_of_reads(descriptor: Descriptor) -> tuple[RowFilter, ...]:
    """All conditions except those by key indexes on the rows that the statement changes."""
    changed = filters_of_changes(descriptor)
    return (
        *descriptor.row_filters,
        *(found for found in descriptor.index_filters if found not in changed),
    )


def filters_of_changes(descriptor: Descriptor) -> tuple[RowFilter, ...]:
    """The conditions by key indexes on the target of MERGE, UPDATE or DELETE."""
    if descriptor.changes is None:
        return ()
    target = descriptor.changes.target
    return tuple(found for found in descriptor.index_filters if found.scan.reference == target)


def snapshots_of(descriptor: Descriptor) -> dict[str, HeldTable]:
    """The snapshots that conditions by key indexes need, by the table's name."""
    found: dict[str, HeldTable] = {}
    for use in descriptor.index_uses:
        found.update(use.snapshots)
    return found


def with_indexes_of(descriptor: Descriptor, current: Descriptor) -> Descriptor:
    """The descriptor with the conditions by key indexes that ``current`` still has."""
    left = {found.scan for found in current.index_filters}
    return replace(
        descriptor,
        index_filters=current.index_filters,
        index_uses=current.index_uses,
        held_scans=current.held_scans,
        planned_files=tuple(
            found if found.scan in left else _without_index(found)
            for found in descriptor.planned_files
        ),
    )


def without_indexes(
    descriptor: Descriptor, tables: Collection[str], code: IndexCode, why: str = ""
) -> Descriptor:
    """The descriptor without the conditions by key indexes of some tables; ``code`` says why.

    Conditions whose keys came from one of these tables are left out too: the keys are those of the
    part that the table's own conditions left, and of its snapshot.
    """
    gone = _depending_on(descriptor, tables)
    if not any(
        use.code == IndexCode.USED and use.scan.table in gone for use in descriptor.index_uses
    ):
        return descriptor
    dropped = {found.scan for found in descriptor.index_filters if found.scan.table in gone}
    left = replace(
        descriptor,
        index_filters=tuple(
            found for found in descriptor.index_filters if found.scan not in dropped
        ),
        index_uses=tuple(
            _unused(use, tables, code, why)
            if use.scan.table in gone and use.code == IndexCode.USED
            else use
            for use in descriptor.index_uses
        ),
        planned_files=tuple(
            _without_index(found) if found.scan in dropped else found
            for found in descriptor.planned_files
        ),
    )
    needed = snapshots_of(left)
    held = tuple(found for found in left.held_scans if found.scan.table in needed)
    return replace(left, held_scans=held)


def _depending_on(descriptor: Descriptor, tables: Collection[str]) -> set[str]:
    """The tables, and those whose conditions by key indexes depend on them."""
    gone = set(tables)
    while True:
        more = {
            use.scan.table
            for use in descriptor.index_uses
            if use.scan.table not in gone and not gone.isdisjoint(use.snapshots)
        }
        if not more:
            return gone
        gone |= more


def _unused(use: IndexUse, tables: Collection[str], code: IndexCode, why: str) -> IndexUse:
    """The use with the reason why it is none; its keys' table may be the reason."""
    if use.scan.table in tables or use.hop is None:
        return replace(use, code=code, why=why)
    return replace(use, code=code, why=f"its keys came from {use.hop.source}")


def with_reason(descriptor: Descriptor, code: IndexCode, why: str) -> Descriptor:
    """The descriptor with ``code`` and ``why`` for the indexes that have ``NOT_PUBLISHED``."""
    uses = (
        replace(use, code=code, why=why) if use.code == IndexCode.NOT_PUBLISHED else use
        for use in descriptor.index_uses
    )
    return replace(descriptor, index_uses=tuple(uses))


def _without_index(found: PlannedFiles) -> PlannedFiles:
    """The files that the scan reads then, not known yet if an index had a part in them."""
    if found.without_index is None:
        return found
    return PlannedFiles(
        found.scan,
        found.without_index,
        total_files=found.total_files,
        total_bytes=found.total_bytes,
    )
