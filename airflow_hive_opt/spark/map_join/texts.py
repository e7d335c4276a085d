"""The texts of a statement that Spark may run, from the most restricted one to the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from airflow_hive_opt.documents.descriptor import Changes, Descriptor, RowFilter, Target
from airflow_hive_opt.documents.indexed_scans import IndexCode
from airflow_hive_opt.pruning.scan_way import Way
from airflow_hive_opt.restriction.indexed import (
    filters_of_changes,
    filters_of_reads,
    snapshots_of,
    without_indexes,
)
from airflow_hive_opt.restriction.restrict import restrictions
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.identifiers import quote, quote_table
from airflow_hive_opt.statement.parse import Span
from airflow_hive_opt.statement.scan_ref import ScanRef


@dataclass(frozen=True)
class RestrictedText:
    """A text, and the ``descriptor`` with the conditions that are in it.

    ``on_branch`` says that it changes rows on a branch of its target.
    """

    text: str
    descriptor: Descriptor
    on_branch: bool = False


@dataclass(frozen=True)
class Restricted:
    """A statement ``sql`` and what restricts it.

    ``targets`` are those of the descriptor with the partitions that there are now. ``fewer_joins``
    is the text without the joins that the keys decide.
    """

    sql: str
    descriptor: Descriptor
    targets: Sequence[Target]
    ways: Mapping[ScanRef, Way]
    fewer_joins: Optional[str] = None

    def texts(self, branch: Optional[str]) -> list[RestrictedText]:
        """The restricted texts; ``branch`` is the target's branch, if there is one."""
        descriptor, changes = self.descriptor, self.descriptor.changes
        on_main = _on_main(descriptor, branch is not None)
        found = []
        if branch is not None and changes is not None:
            filters = filters_of_changes(descriptor)
            edits = self._edits(descriptor, (*filters_of_reads(descriptor), *filters))
            edits.append(_renamed(changes, filters[0], branch))
            found.append(RestrictedText(spliced(self.sql, edits), descriptor, on_branch=True))
        if self.fewer_joins is not None:
            found.append(RestrictedText(self.fewer_joins, on_main))
        found.append(self._on_main(on_main))
        if on_main.index_filters:
            why = "Spark rejects the statement with its conditions"
            tables = snapshots_of(on_main)
            plainer = without_indexes(on_main, tables, IndexCode.NO_FIXED_SNAPSHOT, why)
            found.append(self._on_main(plainer))
        return found

    def _on_main(self, descriptor: Descriptor) -> RestrictedText:
        edits = self._edits(descriptor, filters_of_reads(descriptor))
        return RestrictedText(spliced(self.sql, edits), descriptor)

    def _edits(self, descriptor: Descriptor, filters: Sequence[RowFilter]) -> list[Edit]:
        return restrictions(
            self.sql,
            self.targets,
            self.ways,
            filters,
            descriptor.changes,
            descriptor.held_scans,
        )


def _on_main(descriptor: Descriptor, has_branch: bool) -> Descriptor:
    """The descriptor of a text that changes the table itself, not a branch."""
    tables = {found.scan.table for found in filters_of_changes(descriptor)}
    code = IndexCode.NOT_PUBLISHED if has_branch else IndexCode.NO_BRANCH
    return without_indexes(descriptor, tables, code)


def _renamed(changes: Changes, of_target: RowFilter, branch: str) -> Edit:
    """The edit that puts the branch in place of the target, under its alias."""
    alias = "" if changes.aliased else f" AS {quote(of_target.scan.alias)}"
    return Edit(Span(*changes.target), f"{quote_table(branch)}{alias}")
