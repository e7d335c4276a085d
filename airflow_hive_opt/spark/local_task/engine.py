"""Spark as the engine of the local task."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Optional, Union

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.local_task.engine import Keys, NamesOf
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import KeyPredicate, KeySource, Layer, ScanDecision
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.catalog.lakes.formats import named
from airflow_hive_opt.spark.keys.key_query import KeyQuery, key_query, run_alone, run_together
from airflow_hive_opt.spark.keys.key_set import Keys as SparkKeys
from airflow_hive_opt.spark.keys.skeleton import fulfilling, skeleton_view, unique_view
from airflow_hive_opt.spark.local_task.data_columns import DataColumn
from airflow_hive_opt.spark.local_task.fixed_snapshots import FixedSnapshots
from airflow_hive_opt.spark.local_task.indexed_files import KeyIndexLookup
from airflow_hive_opt.spark.local_task.lake_scans import LakeScan
from airflow_hive_opt.spark.local_task.listed_keys import reads_current_metadata
from airflow_hive_opt.statement.identifiers import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.descriptor import Target
    from airflow_hive_opt.documents.job import KeyBounds
    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.local_task.context import LocalTaskContext
    from airflow_hive_opt.pruning.plan import Plan
    from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
    from airflow_hive_opt.statement.catalog import Table

log = logging.getLogger(__name__)


class SparkEngine:
    """An :class:`~airflow_hive_opt.local_task.engine.Engine` on one session.

    ``from_metadata`` allows keys that a table's own metadata lists, some of which may be those of
    deleted rows.
    """

    failures = (PySparkException, Py4JError, MetastoreError, ValueError, OverflowError)

    def __init__(
        self,
        session: SparkSession,
        bounds: KeyBounds,
        parameters: Mapping[str, object],
        from_metadata: bool = False,
    ) -> None:
        self._session = session
        self._bounds = bounds
        self._parameters = parameters
        self._from_metadata = from_metadata and reads_current_metadata(session)

    def collect(self, source: KeySource, names: NamesOf) -> Union[Keys, Reason]:
        """See :class:`~airflow_hive_opt.local_task.engine.Engine`."""
        with ExitStack() as views:
            asked = source
            for planned, table in source.skeletons:
                view = unique_view(planned)
                views.enter_context(skeleton_view(self._session, view, table, names(table)))
                if self._session.sql(f"SELECT 1 FROM {quote(view)} WHERE __odd").take(1):
                    raise ValueError(
                        f"{table.name} has a partition whose name does not determine the value "
                        "that Spark reads from it"
                    )
                asked = replace(asked, sql=asked.sql.replace(quote(planned), quote(view)))
            keys = run_alone(self._session, self._query(asked))
            return keys if isinstance(keys, Reason) else keys.of(source)

    def collect_together(
        self,
        sources: Sequence[KeySource],
        names: NamesOf,  # noqa: ARG002 - no source of partition names is among them
    ) -> Sequence[Union[Keys, Reason, Exception]]:
        """See :class:`~airflow_hive_opt.local_task.engine.Engine`."""
        queries: dict[int, KeyQuery] = {}
        found: dict[int, Union[Keys, Reason, Exception]] = {}
        for at, source in enumerate(sources):
            try:
                query = self._query(source)
            except self.failures as error:
                found[at] = error
                continue
            if isinstance(query, Reason):
                found[at] = query
            else:
                queries[at] = query
        for at, future in zip(queries, run_together(self._session, list(queries.values()))):
            try:
                found[at] = future.result()
            except self.failures as error:
                found[at] = error
        return [found[at] for at in range(len(sources))]

    def fulfilling(
        self,
        table: Table,
        layers: Sequence[Layer],
        partitions: Sequence[Partition],
        conditions: Sequence[str],
        keys: Optional[Keys] = None,
    ) -> Optional[list[Partition]]:
        """See :class:`~airflow_hive_opt.local_task.engine.Engine`."""
        assert keys is None or isinstance(keys, SparkKeys), "keys of this engine"
        return fulfilling(
            self._session, table, layers, partitions, conditions, self._parameters, keys
        )

    def _query(self, source: KeySource) -> Union[KeyQuery, Reason]:
        """The source's key query, of its table's metadata if that has the keys."""
        session, bounds, parameters = self._session, self._bounds, self._parameters
        if self._from_metadata and source.metadata_sql:
            listed = replace(source, sql=source.metadata_sql)
            try:
                query = key_query(session, listed, bounds, parameters)
            except self.failures as error:
                log.info(
                    "the keys of %s are read from its rows, not from its metadata: %s",
                    source.name,
                    in_words(error),
                )
            else:
                return query if isinstance(query, Reason) else replace(query, exact=False)
        return key_query(session, source, bounds, parameters)


class SparkScans:
    """The :class:`~airflow_hive_opt.local_task.scan_kinds.OtherScans` of one session.

    ``catalog`` gives the location of files, ``indexes`` is the folder of the key indexes.
    ``may_count_in_plan`` says that the numbers of files are not needed before the statement's plan.
    """

    def __init__(
        self,
        session: SparkSession,
        catalog: SessionCatalog,
        indexes: Optional[StoragePath] = None,
        may_count_in_plan: bool = False,
    ) -> None:
        self._session = session
        self._catalog = catalog
        self._indexes = indexes
        self._may_count_in_plan = may_count_in_plan
        self._snapshots: Optional[FixedSnapshots] = None

    def lake_scan(self, context: LocalTaskContext, decision: ScanDecision, plan: Plan) -> LakeScan:
        """See :class:`~airflow_hive_opt.local_task.scan_kinds.OtherScans`.

        The data files of a table with a key index are read while its key queries run.
        """
        lookup = self.lookup(plan, context.runs_without_index(decision))
        if lookup is not None and not context.skips_keys(decision):
            try:
                lookup.begin(decision)
            except Exception as error:  # noqa: BLE001 - the lookup says it if it fails too
                log.debug("the data files of %s are read later: %s", decision.table.name, error)
        format_ = named(self._session, decision.table.provider)
        in_plan = self._may_count_in_plan and format_.plans_files and not decision.table.indexed
        return LakeScan(context, self._session, decision, plan, lookup, in_plan)

    def lookup(self, plan: Plan, runs_without: Optional[int]) -> Optional[KeyIndexLookup]:
        """The lookup in the key indexes; ``None`` if there are none."""
        if self._indexes is None:
            return None
        return KeyIndexLookup(
            self._session, self._indexes, plan, self.snapshots(plan), runs_without
        )

    def snapshots(self, plan: Plan) -> FixedSnapshots:
        """The snapshots of the plan's tables, the same for all of its scans."""
        if self._snapshots is None:
            self._snapshots = FixedSnapshots(self._session, self._catalog, plan)
        return self._snapshots

    def data_column(
        self, context: LocalTaskContext, predicate: KeyPredicate, target: Optional[Target]
    ) -> DataColumn:
        """See :class:`~airflow_hive_opt.local_task.scan_kinds.OtherScans`."""
        return DataColumn(context, self._session, self._catalog, predicate, target)
