"""What key indexes did for the scans of a statement, as parts of the descriptor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.text_enum import StrEnum


class IndexCode(StrEnum):
    """What a run did with the key index of one column; :attr:`sentence` explains it."""

    USED = "USED"
    NOT_READABLE = "NOT_READABLE"
    OTHER_TYPE = "OTHER_TYPE"
    KEYS_NOT_LISTED = "KEYS_NOT_LISTED"
    NO_FIXED_SNAPSHOT = "NO_FIXED_SNAPSHOT"
    NO_PARTITION_VALUES = "NO_PARTITION_VALUES"
    MOST_FILES_HOLD_KEYS = "MOST_FILES_HOLD_KEYS"
    OTHER_SNAPSHOT = "OTHER_SNAPSHOT"
    NO_BRANCH = "NO_BRANCH"
    NOT_PUBLISHED = "NOT_PUBLISHED"
    NOT_TRIED_AGAIN = "NOT_TRIED_AGAIN"

    @property
    def sentence(self) -> str:
        """The meaning of the code, for logs."""
        return _SENTENCES[self]


_SENTENCES = {
    IndexCode.USED: (
        "the scan reads only the partitions of files that hold the keys, or that the index does "
        "not cover"
    ),
    IndexCode.NOT_READABLE: "the index can't be read",
    IndexCode.OTHER_TYPE: "the index, the column and the keys do not have the same type of values",
    IndexCode.KEYS_NOT_LISTED: "the keys are too many, or not known one by one",
    IndexCode.NO_FIXED_SNAPSHOT: "the statement can't be held to one snapshot of the table",
    IndexCode.NO_PARTITION_VALUES: (
        "no partition column of the table has values that can become a condition"
    ),
    IndexCode.MOST_FILES_HOLD_KEYS: (
        "the partitions of the files to read are nearly all partitions of the table"
    ),
    IndexCode.OTHER_SNAPSHOT: (
        "the table has another snapshot at the map join than at the local task"
    ),
    IndexCode.NO_BRANCH: "the statement could not run on a branch of the table",
    IndexCode.NOT_PUBLISHED: (
        "the statement ran on a branch that could not become the table's current state, so it ran "
        "again without the index; the log says why"
    ),
    IndexCode.NOT_TRIED_AGAIN: (
        "an earlier run had to run its statement twice (NOT_PUBLISHED), so this run does not use "
        "the index; about every tenth run does"
    ),
}


@dataclass(frozen=True)
class IndexUse:
    """What a run did with the key index of a scan's ``column``.

    ``code`` is an :class:`IndexCode`, ``why`` says more. The conditions by the index are true for
    the ``snapshot`` of the scan's table alone: ``files`` of its ``total_files`` data files hold one
    of the keys, or are among the ``unknown`` files that the index does not cover. ``runs`` is the
    number of runs in a row with ``NOT_TRIED_AGAIN``.
    """

    scan: ScanRef
    column: str
    code: str
    why: str = ""
    snapshot: Optional[str] = None
    files: Optional[int] = None
    unknown: Optional[int] = None
    total_files: Optional[int] = None
    runs: Optional[int] = None


@dataclass(frozen=True)
class HeldScan:
    """A scan that reads its table at ``snapshot`` if conditions by a key index are used.

    ``text`` and ``aliased`` are as in :class:`~airflow_hive_opt.documents.descriptor.Target`.
    """

    scan: ScanRef
    text: str
    aliased: bool
    snapshot: str
