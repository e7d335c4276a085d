"""On what the keys of a query depend in a session, so that tasks may share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import airflow_hive_opt
from airflow_hive_opt.documents.binding import TEMPORARY_VIEW, VIEW
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.key_set import KeyQueryState, ListedKeys, settings_of_files
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.shared_key_sets import (
    NotShared,
    check_of_all_days,
    used_parameters,
)
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.spark.catalog.resolved_names import Names, ResolvedNames
from airflow_hive_opt.spark.catalog.session_binding import binding
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog, catalog_of
from airflow_hive_opt.spark.catalog.table_state import (
    LEAVES_OUT_FILES,
    UnknownState,
    forget_files,
    table_state,
)
from airflow_hive_opt.spark.keys.key_set import ROWS
from airflow_hive_opt.spark.keys.key_set import Keys as SparkKeys
from airflow_hive_opt.spark.keys.taken_rows import TakenRows
from airflow_hive_opt.spark.local_task.listed_keys import reads_current_metadata
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.session_conf import all_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_EXTENSIONS = "spark.sql.extensions"
# They show all users the same rows; another extension may filter them by rules of its own.
_KNOWN_EXTENSIONS = frozenset(
    {
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    }
)


class SparkKeyQueries:
    """The :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries` of one session.

    Each description looks up all names again.
    """

    def __init__(self, session: SparkSession, job: Job) -> None:
        self._session = session
        self._job = job

    def described(self, source: KeySource, anew: bool) -> KeyQueryState:
        """See :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries`."""
        if is_remote(self._session):
            raise NotShared("a session on a Spark Connect server does not tell what it reads")
        if not reads_current_metadata(self._session):
            raise NotShared("the session has cached rows, or reads a branch of Iceberg tables")
        job = self._job
        settings = all_set(self._session)
        _check_settings(settings)
        catalog = catalog_of(self._session)
        names = Names(self._session, catalog).resolve([source.sql])
        check_of_all_days(names.texts, job.parameters)
        if any(LEAVES_OUT_FILES.search(text) for text in names.texts):
            raise NotShared("the key query may leave out files")
        found = binding(self._session, catalog, names)
        return KeyQueryState(
            source.sql,
            source.metadata_sql,
            used_parameters(source.sql, job.parameters),
            (job.max_keys, job.max_key_bytes),
            self._reader,
            replace(found, settings={**found.settings, **settings_of_files(settings)}),
            self._states(catalog, names, anew),
        )

    def listed(self, keys: Keys) -> ListedKeys:
        """See :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries`."""
        assert isinstance(keys, SparkKeys), "keys of this engine"
        found = keys.listed()
        if found is None:
            raise NotShared("a key is no integer, string or date")
        return found

    def taken(self, source: KeySource, keys: ListedKeys) -> Keys:
        """See :class:`~airflow_hive_opt.local_task.shared_key_sets.KeyQueries`."""
        return SparkKeys(source, TakenRows(self._session, keys, ROWS), keys.exact)

    @cached_property
    def _reader(self) -> str:
        """What reads the keys; a plug-in of Spark may show other rows to another user."""
        user = self._session.sparkContext.sparkUser()
        package = f"airflow-hive-opt {airflow_hive_opt.__version__}"
        return f"Spark {self._session.version} as {user} with {package}"

    def _states(
        self, catalog: SessionCatalog, names: ResolvedNames, anew: bool
    ) -> Mapping[str, Mapping[str, str]]:
        """The state of each table that the names stand for, below views too."""
        if unknown := names.unidentified | names.missing:
            raise NotShared(f"nothing identifies {' and '.join(sorted(unknown))} in another task")
        states = {}
        for name, location in names.tables.items():
            if location is not None and location.startswith(TEMPORARY_VIEW):
                raise NotShared(f"{name} is a temporary view")
            if location is not None and location.startswith(VIEW):
                continue
            table = catalog.table(name)
            if table is None:
                raise NotShared(f"{name} is not found")
            try:
                if anew and not table.provider:
                    forget_files(self._session, table)
                states[table.name] = table_state(self._session, table)
            except UnknownState as why:
                raise NotShared(str(why)) from None
        if not states:
            raise NotShared("the key query reads no table")
        return states


def _check_settings(settings: Mapping[str, str]) -> None:
    """Raises :class:`NotShared` if the session may show less than all rows of a table."""
    for name, value in settings.items():
        if LEAVES_OUT_FILES.search(name) and value.lower() != "false":
            raise NotShared(f"{name} is {value}, and the key query may leave out files")
    classes = {each.strip() for each in settings.get(_EXTENSIONS, "").split(",")} - {""}
    if unknown := sorted(classes - _KNOWN_EXTENSIONS):
        raise NotShared(f"the extension {unknown[0]} may filter the rows of tables")
