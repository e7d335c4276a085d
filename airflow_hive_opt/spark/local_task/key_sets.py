"""The key sets of a statement's small tables; runs no key query twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.keys.key_query import KeyQuery, key_query, run_alone, run_together
from airflow_hive_opt.spark.keys.key_set import KeyBounds, Keys
from airflow_hive_opt.spark.keys.skeleton import skeleton_view, unique_view
from airflow_hive_opt.spark.local_task.listed_keys import reads_current_metadata
from airflow_hive_opt.spark.session.error_text import in_words
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

FAILURES = (PySparkException, Py4JError, MetastoreError, ValueError, OverflowError)
"""Errors that only cost the pruning."""

_Asked = tuple[str, str, tuple[tuple[str, Table], ...]]


class KeySets:
    """The key sets of one statement. ``names`` lists a table's partition names.

    ``from_metadata`` allows keys that a table's own metadata lists, some of which may be those of
    deleted rows.
    """

    def __init__(
        self,
        session: SparkSession,
        bounds: KeyBounds,
        parameters: Mapping[str, object],
        names: Callable[[Table], Sequence[Partition]],
        from_metadata: bool = False,
    ) -> None:
        self._session = session
        self._bounds = bounds
        self._parameters = parameters
        self._partition_names = names
        self._from_metadata = from_metadata and reads_current_metadata(session)
        self._found: dict[_Asked, Keys | Reason] = {}

    def collect_together(self, sources: Sequence[KeySource]) -> None:
        """Runs the key queries of several sources at the same time.

        Queries of partition names wait until they are needed: a scan may do without them, and the
        client of the metastore is for one thread.
        """
        distinct = {_asked(source): source for source in sources if not source.skeletons}
        if len(distinct) < 2:
            return
        queries: dict[_Asked, KeyQuery] = {}
        for asked, source in distinct.items():
            try:
                query = self._query(source)
            except FAILURES as error:
                query = _unreadable(source, error)
            if isinstance(query, Reason):
                self._found[asked] = query
            else:
                queries[asked] = query
        for asked, future in zip(queries, run_together(self._session, list(queries.values()))):
            try:
                self._found[asked] = future.result()
            except FAILURES as error:
                self._found[asked] = _unreadable(distinct[asked], error)

    def _query(self, source: KeySource) -> KeyQuery | Reason:
        """The source's key query, of its table's metadata if that has the keys."""
        if self._from_metadata and source.metadata_sql:
            listed = replace(source, sql=source.metadata_sql)
            try:
                query = key_query(self._session, listed, self._bounds, self._parameters)
            except FAILURES as error:
                log.info("%s is read for its keys: %s", source.name, in_words(error))
            else:
                return query if isinstance(query, Reason) else replace(query, exact=False)
        return key_query(self._session, source, self._bounds, self._parameters)

    def of(self, source: KeySource) -> Keys | Reason:
        """The source's keys, or why they can't be used; does not ask a failed source again."""
        asked = _asked(source)
        if asked not in self._found:
            try:
                self._found[asked] = self.collect(source)
            except FAILURES as error:
                self._found[asked] = _unreadable(source, error)
        found = self._found[asked]
        if isinstance(found, Reason):
            log.info("the keys of %s are not used, %s", source.name, found)
            return found
        log.info("%s gives %d keys", source.name, found.count)
        return replace(found, source=source)

    def known(self, source: KeySource) -> Keys | None:
        """The source's keys if they have been read."""
        found = self._found.get(_asked(source))
        return replace(found, source=source) if isinstance(found, Keys) else None

    def collect(self, source: KeySource) -> Keys | Reason:
        """The source's keys, or why they can't be used; raises errors of Spark and metastore."""
        with ExitStack() as views:
            asked = source
            for planned, table in source.skeletons:
                view = unique_view(planned)
                names = self._partition_names(table)
                views.enter_context(skeleton_view(self._session, view, table, names))
                if self._session.sql(f"SELECT 1 FROM {quote(view)} WHERE __odd").take(1):
                    raise ValueError(f"a partition of {table.name} has no readable value")
                asked = replace(asked, sql=asked.sql.replace(quote(planned), quote(view)))
            keys = run_alone(self._session, self._query(asked))
            return keys if isinstance(keys, Reason) else replace(keys, source=source)


def failed(what: str, error: Exception) -> Reason:
    """Logs why something can't be done for pruning; returns the reason code."""
    log.warning("%s: %s", what, in_words(error))
    return Reason.KEY_SOURCE_FAILED


def _asked(source: KeySource) -> _Asked:
    """What a key query reads; the same view name may be another table."""
    return source.sql, source.metadata_sql, source.skeletons


def _unreadable(source: KeySource, error: Exception) -> Reason:
    return failed(f"the keys of {source.name} can't be read", error)
