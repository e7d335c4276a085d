"""Which metastore the local task asks for partitions: Spark's own, past Spark where it can."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.runtime.metastore import KeySet, Metastore, MetastoreError
from airflow_hive_opt.runtime.partitions import Partition, matching
from airflow_hive_opt.runtime.report import Work
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.statement.catalog import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.runtime.thrift_metastore import ThriftMetastore

log = logging.getLogger(__name__)

# What the plain Thrift client does not speak.
_SECURED = (
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.thrift.framed.transport.enabled",
    "hive.metastore.thrift.compact.protocol.enabled",
)
_PATIENCE = 10  # seconds; a server that wants TLS says nothing at all
# The names of so many partitions are here, all of them, before the first keys are.
_NAMES_AHEAD = 5_000


class PartitionsOf:
    """Whom a statement's local task asks for partitions; a context manager.

    A :class:`~airflow_hive_opt.runtime.metastore.PartitionCatalog` over Thrift where Spark's is
    remote and plain, since there partitions are counted without their names, else ``catalog``. A
    server takes some ten milliseconds to accept a client, as many to count and to list names: time
    in which Spark plans the statement and reads keys, so all that is done in the background.
    """

    def __init__(self, session: SparkSession, catalog: SessionCatalog) -> None:
        uris = plain_uris(session)
        self._catalog = catalog
        self._background = ThreadPoolExecutor(1, "metastore")
        self._thrift = self._background.submit(lambda: _connected(uris) if uris else None)
        self._ahead: dict[str, Future[_Ahead | None]] = {}

    def __enter__(self) -> PartitionsOf:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failed = self._thrift.exception()  # is raised where it is asked for an answer
        self._background.shutdown(cancel_futures=True)  # a server that fails is not asked on
        if failed is None and (thrift := self._thrift.result()):
            thrift.close()

    def ask_ahead(self, tables: Iterable[Table]) -> None:
        """Begins to count the tables' partitions, and to list few, where the server counts."""
        for table in tables:
            if table.name not in self._ahead:
                self._ahead[table.name] = self._background.submit(self._ask, table)

    def partition_count(self, table: Table) -> int:
        """See :class:`~airflow_hive_opt.runtime.metastore.PartitionCatalog`."""
        ahead = self._answered(table)
        return ahead.count if ahead else self._answering.partition_count(table)

    def partition_names(self, table: Table) -> list[Partition]:
        """See :class:`~airflow_hive_opt.runtime.metastore.PartitionCatalog`."""
        ahead = self._answered(table)
        if ahead and ahead.names is not None:
            return ahead.names
        return self._answering.partition_names(table)

    def partitions_by_keys(
        self, table: Table, keys: Sequence[KeySet], total: int
    ) -> list[Partition]:
        """See :class:`~airflow_hive_opt.runtime.metastore.PartitionCatalog`."""
        ahead = self._answered(table)
        if ahead and ahead.names is not None:
            types = [column.type for column in table.partition_columns]
            return list(matching(ahead.names, types, keys))
        return self._answering.partitions_by_keys(table, keys, total)

    def work(self) -> Work | None:
        """What was asked so far, by Spark too; ``None`` where that does not tell."""
        met = self._thrift.done() and self._thrift.exception() is None
        thrift = self._thrift.result() if met else None
        spark = self._catalog.work()
        return spark + thrift.work() if thrift and spark else spark

    @property
    def _answering(self) -> Metastore:
        """Who answers, with nobody else waiting for an answer: a client is for one thread."""
        wait(self._ahead.values())
        return self._thrift.result() or self._catalog

    def _answered(self, table: Table) -> _Ahead | None:
        return self._ahead[table.name].result() if table.name in self._ahead else None

    def _ask(self, table: Table) -> _Ahead | None:
        thrift = self._thrift.result()
        if thrift is None:
            return None
        count = thrift.partition_count(table)
        return _Ahead(count, thrift.partition_names(table) if count <= _NAMES_AHEAD else None)


@dataclass(frozen=True)
class _Ahead:
    """How many partitions a table has and, if they are few, which."""

    count: int
    names: list[Partition] | None


def _connected(uris: str) -> ThriftMetastore | None:
    """A client that is understood, if a plain one is; Spark may have settings we do not know."""
    # late: needs a package that Spark's own catalog does without
    from airflow_hive_opt.runtime.thrift_metastore import ThriftMetastore

    try:
        metastore = ThriftMetastore(uris)
        metastore.greet(_PATIENCE)
    except (MetastoreError, ValueError) as error:
        log.info("partitions are asked through Spark: %s", error)
        return None
    return metastore


def plain_uris(session: SparkSession) -> str | None:
    """``hive.metastore.uris`` of the session's Spark; ``None`` where it is embedded or secured.

    Over Spark Connect ``None`` too: what the server reaches need not be reached from here.
    """
    if is_remote(session) or session.conf.get("spark.sql.catalogImplementation") != "hive":
        return None
    # what Spark's own client was made of; a SET in the session changes nothing about that one
    conf: Any = session._jsparkSession.sharedState().hadoopConf()
    if any(conf.getBoolean(name, False) for name in _SECURED):
        return None
    return str(conf.get("hive.metastore.uris") or "").strip() or None
