"""Turns keys of a column with a key index into conditions on the table's partition columns.

The index says which data files of one snapshot hold the keys. A file that it does not cover may
hold any key. The values of these files' partitions become one condition for each partition column.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional, Union

from airflow_hive_opt.documents.descriptor import PlannedFiles, RowFilter, SourceKeys
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.indexed_scans import HeldScan, IndexCode, IndexUse
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index.lookup import FoundFiles, files_holding
from airflow_hive_opt.key_index.manifest import read_index
from airflow_hive_opt.local_task.earlier_runs import is_for_nothing
from airflow_hive_opt.pruning.decisions import ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.spark.catalog.lakes.formats import named
from airflow_hive_opt.spark.catalog.lakes.indexed_format import (
    DataFile,
    Identity,
    PartitionField,
)
from airflow_hive_opt.spark.local_task.data_files import DataFiles
from airflow_hive_opt.spark.local_task.fixed_snapshots import (
    FixedSnapshot,
    FixedSnapshots,
    is_target,
)
from airflow_hive_opt.spark.local_task.partition_values import partition_fields, partition_filter
from airflow_hive_opt.spark.local_task.value_lists import (
    MOST_LISTED,
    ValueFilter,
    with_fewer_ranges,
)
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)
# With 100 ranges, Spark takes as long to plan a MERGE as to change 20 small files.
_MOST_RANGES = 16


@dataclass(frozen=True)
class Indexed:
    """What key indexes give for one scan: see the fields of the descriptor.

    ``is_close`` says that most files in the partitions that the conditions leave hold keys.
    ``files`` has the numbers of files that the conditions leave. It is ``None`` if only the format
    can count them.
    """

    filters: tuple[RowFilter, ...] = ()
    uses: tuple[IndexUse, ...] = ()
    held: tuple[HeldScan, ...] = ()
    is_close: bool = False
    files: Optional[PlannedFiles] = None

    @property
    def conditions(self) -> tuple[RowFilter, ...]:
        """The filters that are conditions on the scan."""
        return tuple(each for each in self.filters if not each.guards_only)

    def simplified(self, found: Sequence[ValueFilter]) -> list[ValueFilter]:
        """``found`` with few ranges of a column whose index covers all files of the scan.

        Not if the conditions leave many files without keys: ranges may exclude these.
        """
        if not self.is_close:
            return list(found)
        chosen = _fully_covered(self.uses)
        return [
            with_fewer_ranges(each, _MOST_RANGES) if each.column in chosen else each
            for each in found
        ]


class KeyIndexLookup:
    """The lookups of one scan's keys in the key indexes of ``folder``.

    ``runs_without`` is the number of runs in a row that must not change the scan's table by an
    index; ``None`` if this run may.
    """

    def __init__(
        self,
        session: SparkSession,
        folder: StoragePath,
        plan: Plan,
        snapshots: FixedSnapshots,
        runs_without: Optional[int] = None,
    ) -> None:
        self._session = session
        self._folder = folder
        self._plan = plan
        self._snapshots = snapshots
        self._runs_without = runs_without
        self._files: Optional[DataFiles] = None

    def begin(self, decision: ScanDecision) -> None:
        """Begins to read the table's data files if the scan's keys may ask an index.

        Spark reads them for nothing if the keys are too many, or the index can't be read. Raises
        Spark's errors; :meth:`indexed` then reads the files itself.
        """
        relation = decision.relation
        if relation is None or not set(decision.columns).intersection(decision.table.indexed):
            return
        if self._runs_without is not None and is_target(self._plan, relation):
            return
        fixed = self._snapshots.of(relation)
        if isinstance(fixed, FixedSnapshot) and (fields := partition_fields(relation)):
            files = self._data_files(decision, fields, fixed)
            files.begin()
            self._files = files

    def refusal(self, relation: TableRelation) -> Optional[tuple[IndexCode, str]]:
        """Why no index of the relation's table can be used, whatever the keys are; or ``None``.

        Raises Spark's errors.
        """
        fixed = self._snapshots.of(relation)
        if isinstance(fixed, str):
            return IndexCode.NO_FIXED_SNAPSHOT, fixed
        return None if partition_fields(relation) else (IndexCode.NO_PARTITION_VALUES, "")

    def indexed(self, decision: ScanDecision, found: Sequence[ValueFilter]) -> Indexed:
        """The conditions by the indexes of the scan's columns; raises Spark's errors.

        ``found`` are the scan's conditions by its keys.
        """
        relation = decision.relation
        candidates = [each for each in found if each.column in decision.table.indexed]
        if relation is None or not candidates:
            return Indexed()
        if self._runs_without is not None and is_target(self._plan, relation):
            uses = [_refused(each, IndexCode.NOT_TRIED_AGAIN) for each in candidates]
            return Indexed(uses=_told([replace(use, runs=self._runs_without) for use in uses]))
        fixed, fields = self._snapshots.of(relation), partition_fields(relation)
        if isinstance(fixed, str) or not fields:
            code, why = self.refusal(relation) or (IndexCode.NO_PARTITION_VALUES, "")
            return Indexed(uses=_told([_refused(each, code, why) for each in candidates]))
        files = self._files or self._data_files(decision, fields, fixed)
        uses, to_read = [], None
        guards: list[RowFilter] = []
        for each in candidates:
            use, holding = self._look_up(each, decision, files, fixed)
            uses.append(use)
            if holding is not None:
                to_read = holding if to_read is None else to_read & holding
                guards += _guards(each) if is_target(self._plan, relation) else ()
        if to_read is None:
            return Indexed(uses=_told(uses))
        source = candidates[0].row_filter.source
        filters = self._filters(relation, fields, files, to_read, source)
        if isinstance(filters, IndexCode):
            unused = [replace(use, code=filters) if _is_used(use) else use for use in uses]
            return Indexed(uses=_told(unused))
        conditions, kept = filters
        is_close = len(kept) <= 2 * len(to_read)
        planned, columns = None, _fully_covered(uses)
        # Each kept file holds a key of each column, so no condition on these columns excludes it.
        if len(kept) == len(to_read) and columns.issuperset(each.column for each in found):
            planned = files.numbers_of(decision.scan, kept)
        return Indexed((*conditions, *guards), _told(uses), fixed.held, is_close, planned)

    def _data_files(
        self,
        decision: ScanDecision,
        fields: Sequence[tuple[str, PartitionField]],
        fixed: FixedSnapshot,
    ) -> DataFiles:
        own = [field for _, field in fields]
        return DataFiles(self._session, decision.table, own, fixed)

    def _look_up(
        self,
        keys: ValueFilter,
        decision: ScanDecision,
        files: DataFiles,
        fixed: FixedSnapshot,
    ) -> tuple[IndexUse, Optional[frozenset[str]]]:
        """What the index of one column says, and the files that must be read, if it is used."""
        if keys.keys is None or not self._is_sound(keys, decision):
            return _refused(keys, IndexCode.KEYS_NOT_LISTED), None
        found = self._found(keys, fixed.identity)
        if isinstance(found, IndexUse):
            return found, None
        every = files.by_path.keys()
        unknown = every - found.covered
        to_read = frozenset(unknown | (every & found.holding))
        use = IndexUse(
            keys.row_filter.scan,
            keys.column,
            IndexCode.USED,
            "",
            fixed.snapshot,
            len(to_read),
            len(unknown),
            len(every),
            table_id=fixed.table_id,
        )
        return use, to_read

    def _is_sound(self, keys: ValueFilter, decision: ScanDecision) -> bool:
        """Whether no row of a source with another key can be taken for one without a match.

        UPDATE and DELETE must keep to these keys, since the files of other keys are left out. MERGE
        must fail if its source has others.
        """
        row_level, relation = self._plan.row_level, decision.relation
        if row_level is None or relation is None or not is_target(self._plan, relation):
            return True
        if row_level.source is None:
            return keys.is_exact
        return keys.row_filter.guard is not None and len(keys.keys or ()) <= MOST_LISTED

    def _found(self, keys: ValueFilter, identity: Identity) -> Union[FoundFiles, IndexUse]:
        try:
            index = read_index(self._folder, identity.uuid, identity.columns[keys.column])
            if index is None:
                return _refused(keys, IndexCode.NOT_READABLE, "it has been removed")
            if family(index.type) is None or family(index.type) != family(keys.row_filter.type):
                why = f"the index has {index.type}, the column is {keys.row_filter.type}"
                return _refused(keys, IndexCode.OTHER_TYPE, why)
            return files_holding(self._folder, index, keys.keys or ())
        except DescriptorError as error:
            return _refused(keys, IndexCode.NOT_READABLE, str(error))
        except Exception as error:  # noqa: BLE001 - an index costs speed, never the run
            return _refused(keys, IndexCode.NOT_READABLE, in_words(error))

    def _filters(
        self,
        relation: TableRelation,
        fields: Sequence[tuple[str, PartitionField]],
        files: DataFiles,
        to_read: frozenset[str],
        source: SourceKeys,
    ) -> Union[tuple[tuple[RowFilter, ...], Sequence[DataFile]], IndexCode]:
        """The conditions on the partition columns and the files they keep, or why none are used."""
        table = relation.table.scanned
        rows = {files.by_path[path].values for path in to_read}
        found: dict[int, RowFilter] = {}
        format_ = named(self._session, table.provider)
        for at, (visible, field) in enumerate(fields):
            most = format_.most_values(self._session, table, field.column.name)
            values = {row[at] for row in rows}
            condition = partition_filter(relation, visible, field, values, most, source)
            if condition is not None:
                found[at] = condition
        if not found:
            return IndexCode.NO_PARTITION_VALUES
        chosen = {at: {row[at] for row in rows} for at in found}
        kept = [
            each
            for each in files.by_path.values()
            if all(each.values[at] in values for at, values in chosen.items())
        ]
        if is_for_nothing(len(kept), len(files.by_path)):
            return IndexCode.MOST_FILES_HOLD_KEYS
        return tuple(found.values()), kept


def _guards(keys: ValueFilter) -> tuple[RowFilter, ...]:
    """The list of all keys for MERGE's guard, if its own condition is not that list."""
    if keys.is_exact or keys.row_filter.guard is None:
        return ()
    listed = tuple(map(str, keys.keys or ()))
    return (replace(keys.row_filter, values=listed, is_range=False, guards_only=True),)


def _refused(keys: ValueFilter, code: IndexCode, why: str = "") -> IndexUse:
    return IndexUse(keys.row_filter.scan, keys.column, code, why)


def _is_used(use: IndexUse) -> bool:
    return use.code == IndexCode.USED


def _fully_covered(uses: Sequence[IndexUse]) -> set[str]:
    """The columns whose index covers all files of the scan."""
    return {use.column for use in uses if _is_used(use) and not use.unknown}


def _told(uses: Sequence[IndexUse]) -> tuple[IndexUse, ...]:
    """The uses, which the log has too."""
    for use in uses:
        index = f"the key index of {use.scan.short_name}.{use.column}"
        if _is_used(use):
            log.info(
                "%s: %s of %s files of %s hold the keys, or are not covered (%s)",
                *(index, use.files, use.total_files, use.scan.table, use.unknown),
            )
        else:
            why = f": {use.why}" if use.why else ""
            level = logging.WARNING if use.code == IndexCode.NOT_READABLE else logging.INFO
            log.log(level, "%s is not used, %s%s", index, IndexCode(use.code).sentence, why)
    return tuple(uses)
