"""On what the keys of a query depend in this process, so that tasks may share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import airflow_hive_opt
from airflow_hive_opt.documents.binding import Binding
from airflow_hive_opt.documents.descriptor import Snapshot
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.key_set import (
    KeyQueryState,
    ListedKeys,
    columns_fact,
    digest_of,
    has_settled,
    settings_of_files,
)
from airflow_hive_opt.documents.small_tables import SmallTable
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.shared_key_sets import (
    NotShared,
    check_of_all_days,
    used_parameters,
)
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.statement.types import family
from airflow_hive_opt.worker.engine import WorkerEngine
from airflow_hive_opt.worker.files.folder import data_files
from airflow_hive_opt.worker.files.rows import digest_of_listed
from airflow_hive_opt.worker.key_query import translated
from airflow_hive_opt.worker.keys import Keys as WorkerKeys
from airflow_hive_opt.worker.tables import Tables
from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import Unanswered

# Parameters of a table that change without its rows, or only with its files.
_OF_NO_ROWS = (
    *("numrows", "numfiles", "totalsize", "rawdatasize", "numfileserasurecoded"),
    *("column_stats_accurate", "transient_lastddltime", "last_modified_time", "last_modified_by"),
)


class WorkerKeyQueries:
    """The :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries` of this process.

    ``binding`` returns how the session reads a statement, as far as the worker knows. ``settings``
    are those of the session, as far as they are known.
    """

    def __init__(
        self,
        job: Job,
        tables: Tables,
        engine: WorkerEngine,
        binding: Callable[[str], Binding],
        settings: Mapping[str, str],
    ) -> None:
        self._job = job
        self._tables = tables
        self._engine = engine
        self._binding = binding
        self._settings = settings_of_files(settings)
        self._read: dict[str, SmallTable | Snapshot] = {}

    def described(
        self,
        source: KeySource,
        anew: bool,  # noqa: ARG002 - each read lists the files
    ) -> KeyQueryState:
        """See :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries`."""
        job = self._job
        check_of_all_days([source.sql], job.parameters)
        try:
            used = translated(source, self._tables, job.parameters).used
            states = {key: self._state(key) for key in used}
        except Unanswered as why:
            raise NotShared(str(why)) from None
        if not states:
            raise NotShared("the key query reads no table")
        binding = self._binding(source.sql).for_worker(())
        return KeyQueryState(
            source.sql,
            "",
            used_parameters(source.sql, job.parameters),
            (job.max_keys, job.max_key_bytes),
            f"the worker of airflow-hive-opt {airflow_hive_opt.__version__}",
            replace(binding, settings={**binding.settings, **self._settings}),
            states,
        )

    def listed(self, keys: Keys) -> ListedKeys:
        """See :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries`."""
        assert isinstance(keys, WorkerKeys), "keys of this engine"
        types = [type_.name for type_ in keys.types]
        if None in map(family, types):
            raise NotShared("a key is no integer, string or date")
        return ListedKeys.of(types, keys.rows, keys.numbers, keys.exact, sorted(keys.functions))

    def taken(self, source: KeySource, keys: ListedKeys) -> Keys:
        """See :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries`.

        The map join notices if a table changes from now on, as if its rows had been read.
        """
        types = tuple(map(SqlType, keys.types))
        found = WorkerKeys(
            source, tuple(keys.rows), keys.numbers, types, keys.exact, frozenset(keys.calls)
        )
        for key in translated(source, self._tables, self._job.parameters).used:
            self._tables.note(self._read[key])
        self._engine.note(found)
        return found

    def _state(self, key: str) -> dict[str, str]:
        """The facts of a table; raises ``Unanswered`` if the worker does not read it."""
        table = self._tables.known.table(key)
        if table is None:
            raise Unanswered(f"the metastore has no table {key}")
        columns = columns_fact(table.all_columns)
        if table.provider:
            found = self._tables.lake(table).state()
            self._read[key] = found.snapshot or SmallTable(table.name, found.folders)
            return {**columns, **found.facts}
        parts, names = self._tables.parts(table)
        folders = []
        for part in parts:
            files = data_files(self._tables.open_path(part.storage.location))
            if any(not has_settled(file.changed) for file in files):
                raise Unanswered(f"{table.name} has just changed, and may change again unnoticed")
            folders.append((part.storage.location, digest_of_listed(files)))
        self._read[key] = SmallTable(table.name, tuple(folders), names)
        state = {
            **columns,
            "storage": digest_of(*(_described(part.storage) for part in parts)),
            "files": digest_of(sorted(folders)),
        }
        return state if names is None else {**state, "partitions": names}


def _described(storage: Storage) -> list[object]:
    """How the files of a folder are read."""
    parameters = {
        name: text
        for name, text in storage.parameters.items()
        if name.lower() not in _OF_NO_ROWS and not name.startswith("spark.sql.statistics.")
    }
    properties = (storage.properties, parameters)
    return [storage.format, storage.serde, *(sorted(each.items()) for each in properties)]
