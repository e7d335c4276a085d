"""The texts of a statement that Spark may run, from the most restricted one to the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from airflow_hive_opt.documents.descriptor import Changes, Descriptor, Target
from airflow_hive_opt.documents.indexed_scans import IndexCode
from airflow_hive_opt.pruning.scan_way import Way
from airflow_hive_opt.restriction.indexed import (
    filters_of_changes,
    filters_of_reads,
    snapshots_of,
    without_indexes,
)
from airflow_hive_opt.restriction.restrict import restrict, restrictions
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

    def texts(self, branch: Optional[str], why: str = "") -> list[RestrictedText]:
        """The restricted texts; ``branch`` is the target's branch, ``why`` says why there is none.

        A descriptor of a text that runs after the one on the branch says ``NOT_PUBLISHED``.
        """
        changes = self.descriptor.changes
        on_main = _on_main(self.descriptor, branch is not None, why)
        found = []
        if branch is not None and changes is not None:
            found.append(self._on_branch(changes, branch))
        if self.fewer_joins is not None:
            found.append(RestrictedText(self.fewer_joins, on_main))
        found.append(self._on_main(on_main))
        if on_main.index_filters:
            why = "Spark rejects the statement with its conditions"
            tables = snapshots_of(on_main)
            plainer = without_indexes(on_main, tables, IndexCode.NO_FIXED_SNAPSHOT, why)
            found.append(self._on_main(plainer))
        return found

    def _on_main(self, used: Descriptor) -> RestrictedText:
        filters, held = filters_of_reads(used), used.held_scans
        text = restrict(self.sql, self.targets, self.ways, filters, used.changes, held)
        return RestrictedText(text, used)

    def _on_branch(self, changes: Changes, branch: str) -> RestrictedText:
        used, of_target = self.descriptor, filters_of_changes(self.descriptor)
        filters, held = (*filters_of_reads(used), *of_target), used.held_scans
        edits = restrictions(self.sql, self.targets, self.ways, filters, changes, held)
        alias = "" if changes.aliased else f" AS {quote(of_target[0].scan.alias)}"
        edits.append(Edit(Span(*changes.target), f"{quote_table(branch)}{alias}"))
        return RestrictedText(spliced(self.sql, edits), used, on_branch=True)


def _on_main(descriptor: Descriptor, has_branch: bool, why: str) -> Descriptor:
    """The descriptor of a text that changes the table itself, not a branch."""
    tables = {found.scan.table for found in filters_of_changes(descriptor)}
    code = IndexCode.NOT_PUBLISHED if has_branch else IndexCode.NO_BRANCH
    return without_indexes(descriptor, tables, code, why)
