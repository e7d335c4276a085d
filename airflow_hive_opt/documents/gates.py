"""Gates between the local task and the map join: budgets, and the reaction to empty results."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.report import counted, reason
from airflow_hive_opt.statement.arguments import check_whole_number
from airflow_hive_opt.statement.text_enum import StrEnum

log = logging.getLogger(__name__)


class OnEmpty(StrEnum):
    """The reaction if a pruned table keeps no partition."""

    RUN = "run"
    SKIP = "skip"
    FAIL = "fail"


class OnNoPrune(StrEnum):
    """The reaction if no scan could be pruned."""

    RUN = "run"
    WARN = "warn"
    FAIL = "fail"


class JoinStopped(Exception):
    """The join must not run, according to ``descriptor``; the message says why.

    ``short`` is the message in few words, for lists of runs.
    """

    def __init__(self, message: str, descriptor: Descriptor, short: str = "") -> None:
        super().__init__(message)
        self.descriptor = descriptor
        self.short = short or message


class GateClosed(JoinStopped):
    """A limit is exceeded, or the arguments ask for a failure in this case."""


class NothingToDo(JoinStopped):
    """There is no partition to read, and ``on_empty`` is ``skip``."""


@dataclass(frozen=True)
class Gates:
    """The conditions that a descriptor must fulfil before its join runs.

    ``max_partitions`` and ``max_bytes`` limit what all pruned scans together keep.
    Raises ``ValueError`` for limits that are not whole numbers of at least 0, and for unknown
    choices.
    """

    max_partitions: Optional[int] = None
    max_bytes: Optional[int] = None
    on_empty: str = OnEmpty.RUN
    on_no_prune: str = OnNoPrune.RUN

    def __post_init__(self) -> None:
        """Checks the limits and the choices."""
        for name in ("max_partitions", "max_bytes"):
            bound = getattr(self, name)
            if bound is not None:
                check_whole_number(name, bound)
        for name, choices in (("on_empty", OnEmpty), ("on_no_prune", OnNoPrune)):
            value = getattr(self, name)
            if value not in list(choices):
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")

    def check(self, descriptor: Descriptor) -> None:
        """Raises :class:`GateClosed` or :class:`NothingToDo` if the join must not run."""
        if not descriptor.targets and not descriptor.row_filters:
            self._nothing_pruned(descriptor)
            return
        empty = list(_empty(descriptor))
        if empty and self.on_empty != OnEmpty.RUN:
            sentence = f"the keys match no partition of {', '.join(empty)}"
            if self.on_empty == OnEmpty.SKIP:
                message = f"{sentence}, so the join is skipped (on_empty is 'skip')"
                raise NothingToDo(message, descriptor, sentence)
            raise GateClosed(f"{sentence} (on_empty is 'fail')", descriptor)
        if self.max_partitions is not None:
            counts = [found.partitions for found in descriptor.planned_files]
            over = f"partitions, but max_partitions is {self.max_partitions:,}"
            _check_limit(
                descriptor, "partition", self.max_partitions, over, descriptor.kept, counts
            )
        if self.max_bytes is not None:
            self._check_bytes(descriptor, self.max_bytes)

    def _nothing_pruned(self, descriptor: Descriptor) -> None:
        sentence = f"no scan could be pruned ({reason(descriptor)})"
        if self.on_no_prune == OnNoPrune.FAIL:
            raise GateClosed(f"{sentence} and on_no_prune is 'fail'", descriptor)
        if self.on_no_prune == OnNoPrune.WARN:
            log.warning("%s: the statement runs unpruned", sentence)

    def _check_bytes(self, descriptor: Descriptor, allowed: int) -> None:
        sizes = [part.bytes for target in descriptor.targets for part in target.partitions]
        known = sum(size for size in sizes if size is not None)
        of_files = [found.bytes for found in descriptor.planned_files]
        over = f"bytes, but max_bytes is {allowed:,}"
        _check_limit(descriptor, "byte", allowed, over, known, of_files)
        if unknown := sizes.count(None):
            raise GateClosed(
                f"max_bytes can't be checked: the metastore does not know the size of {unknown:,} "
                f"of {len(sizes):,} partitions. Run ANALYZE TABLE ... PARTITION (...) COMPUTE "
                "STATISTICS NOSCAN, or use max_partitions, which needs no sizes",
                descriptor,
            )


def _check_limit(
    descriptor: Descriptor,
    unit: str,
    allowed: int,
    over: str,
    kept: int,
    of_files: Sequence[int | None],
) -> None:
    """Checks a limit on what is read; a limit that can't be verified counts as exceeded."""
    known = kept + sum(count for count in of_files if count is not None)
    if known > allowed:
        raise GateClosed(
            f"the statement would read {known:,} {over}",
            descriptor,
            f"{counted(known, unit)}, limit {allowed:,}",
        )
    scans = zip(of_files, descriptor.planned_files)
    if unknown := [found.scan.table for count, found in scans if count is None]:
        raise GateClosed(
            f"max_{unit}s can't be checked: the metadata of {', '.join(unknown)} does not say how "
            f"much of it the statement would read. Leave max_{unit}s out",
            descriptor,
        )


def _empty(descriptor: Descriptor) -> Iterator[str]:
    """The scans that read nothing; of a statement that changes rows, only its target counts.

    MERGE may insert rows if it reads nothing of its target.
    """
    changes = descriptor.changes
    if changes is None:
        yield from (target.scan.name for target in descriptor.targets if not target.kept)
    for found in descriptor.planned_files:
        counts = changes is None or (found.scan.reference == changes.target and not changes.inserts)
        if found.files == 0 and counts:
            yield found.scan.name
