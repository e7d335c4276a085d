"""Judges from earlier runs of a statement whether its keys are worth reading.

A local task that keeps nearly all partitions has cost time for nothing. The next runs then do not
read the same keys again, until :data:`RUNS_WITHOUT_KEYS` have passed: the tables may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_hive_opt.documents.descriptor import PlannedFiles
from airflow_hive_opt.pruning.decisions import ScanDecision
from airflow_hive_opt.pruning.reasons import Reason

RUNS_WITHOUT_KEYS = 9
FOR_NOTHING = (
    Reason.ALL_PARTITIONS_MATCH,
    Reason.MOST_PARTITIONS_MATCH,
    Reason.ALL_FILES_MATCH,
    Reason.MOST_FILES_MATCH,
)
"""The reasons after which the next run need not read the keys again."""
FEW_FILES = 100
"""With so few files a condition costs nothing, and other writers conflict less with MERGE."""
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class EarlierRuns:
    """What the last run found out about its keys.

    ``skipped_keys`` has the digest of each scan whose keys matched nearly all partitions, and of
    keys of large tables that did not pay, with the number of runs in a row that have not read these
    keys. ``skipped_indexes`` has each table that
    a statement could not change by a key index, with the number of runs in a row without it.
    """

    skipped_keys: Mapping[str, int] = field(default_factory=dict)
    skipped_indexes: Mapping[str, int] = field(default_factory=dict)

    def skips_keys(self, digest: str) -> bool:
        """Whether the earlier run's answer still counts, so that the keys are not read."""
        return self.skipped_keys.get(digest, RUNS_WITHOUT_KEYS) < RUNS_WITHOUT_KEYS

    def runs_without_index(self, table: str) -> int | None:
        """The number of runs in a row without the table's index if this is one, else ``None``."""
        runs = self.skipped_indexes.get(table, RUNS_WITHOUT_KEYS)
        return runs + 1 if runs < RUNS_WITHOUT_KEYS else None


def is_for_nothing(kept: int, total: int) -> bool:
    """Whether a run that keeps ``kept`` of ``total`` partitions would be as quick without its keys.

    >>> is_for_nothing(608, 609), is_for_nothing(30, 609), is_for_nothing(0, 0)
    (True, False, False)
    """
    return kept > _NEARLY_ALL * total


def files_for_nothing(found: PlannedFiles) -> Reason | None:
    """Why the condition on a scan would only cost time: it leaves nearly all of many files."""
    if found.files is None or found.total_files is None or found.files <= FEW_FILES:
        return None
    if found.files >= found.total_files:
        return Reason.ALL_FILES_MATCH
    return Reason.MOST_FILES_MATCH if is_for_nothing(found.files, found.total_files) else None


def digest_of(decision: ScanDecision, parameters: Mapping[str, object]) -> str:
    """SHA-256 of all that decides which partitions the scan reads, except the tables' rows.

    Two scans of one statement differ in it even if their keys are equal, because the keys may
    remove the join of only one of them.
    """
    keys = [
        (
            [(s.sql, s.conditions, [table.name for _, table in s.skeletons]) for s in each.sources],
            [(condition.sql, condition.layers) for condition in each.conditions],
        )
        for each in decision.alternatives
    ]
    return _digest(decision, keys, parameters)


def digest_of_hop(decision: ScanDecision, parameters: Mapping[str, object]) -> str:
    """SHA-256 of the keys that other large tables give for the indexes of a scan.

    It differs from each :func:`digest_of`. It has the conditions on the parts of these tables, but
    not their snapshots.
    """
    keys = [
        [("for an index", s.unversioned_sql, s.partition_columns) for s in each.sources]
        for each in decision.alternatives
    ]
    return _digest(decision, keys, parameters)


def _digest(decision: ScanDecision, keys: object, parameters: Mapping[str, object]) -> str:
    text = repr((decision.scan.name, decision.table.name, keys, sorted(parameters.items())))
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
