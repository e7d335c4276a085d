"""Where the local task looks up partitions: Thrift to Spark's metastore, or Spark's catalog."""

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

# Settings of a metastore that the plain Thrift client can't talk to.
_SECURED = (
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.thrift.framed.transport.enabled",
    "hive.metastore.thrift.compact.protocol.enabled",
)
_PATIENCE = 10  # seconds; a server that expects TLS never answers
# Up to this number, all names of a table's partitions are listed before the keys are known.
_PREFETCHED_NAMES = 5_000


class PartitionsOf:
    """Where a statement's local task looks up partitions; a context manager.

    A :class:`~airflow_hive_opt.runtime.metastore.PartitionCatalog`. It uses Thrift if Spark's
    metastore is a remote one with plain Thrift, because Thrift counts partitions without listing
    their names. Otherwise it uses ``catalog``. A server takes some ten
    milliseconds to accept a client, and as long to count and to list names. A background thread
    does that while Spark plans the statement and reads keys.
    """

    def __init__(self, session: SparkSession, catalog: SessionCatalog) -> None:
        uris = plain_uris(session)
        self._catalog = catalog
        self._background = ThreadPoolExecutor(1, "metastore")
        self._thrift = self._background.submit(lambda: _connected(uris) if uris else None)
        self._prefetched: dict[str, Future[_Prefetched | None]] = {}

    def __enter__(self) -> PartitionsOf:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failed = self._thrift.exception()  # metastore calls raise it
        self._background.shutdown(cancel_futures=True)  # no further calls to a server that fails
        if failed is None and (thrift := self._thrift.result()):
            thrift.close()

    def prefetch(self, tables: Iterable[Table]) -> None:
        """Starts to count the tables' partitions, and to list them if few, over Thrift only."""
        for table in tables:
            if table.partition_columns and table.name not in self._prefetched:
                self._prefetched[table.name] = self._background.submit(self._ask, table)

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
        """The metastore calls so far, Spark's included; ``None`` if Spark does not report them."""
        met = self._thrift.done() and self._thrift.exception() is None
        thrift = self._thrift.result() if met else None
        spark = self._catalog.work()
        return spark + thrift.work() if thrift and spark else spark

    @property
    def _answering(self) -> Metastore:
        """The metastore to call, once the background thread is idle: a client is for one thread."""
        wait(self._prefetched.values())
        return self._thrift.result() or self._catalog

    def _answered(self, table: Table) -> _Prefetched | None:
        return self._prefetched[table.name].result() if table.name in self._prefetched else None

    def _ask(self, table: Table) -> _Prefetched | None:
        thrift = self._thrift.result()
        if thrift is None:
            return None
        count = thrift.partition_count(table)
        return _Prefetched(
            count, thrift.partition_names(table) if count <= _PREFETCHED_NAMES else None
        )


@dataclass(frozen=True)
class _Prefetched:
    """A table's number of partitions and, if there are few, the partitions."""

    count: int
    names: list[Partition] | None


def _connected(uris: str) -> ThriftMetastore | None:
    """A client that the server answers, else ``None``: Spark may have settings we do not know."""
    # imported late: it needs a package that Spark's own catalog does not
    from airflow_hive_opt.runtime.thrift_metastore import ThriftMetastore

    try:
        metastore = ThriftMetastore(uris)
        metastore.greet(_PATIENCE)
    except (MetastoreError, ValueError) as error:
        log.info("partitions are looked up through Spark: %s", error)
        return None
    return metastore


def plain_uris(session: SparkSession) -> str | None:
    """``hive.metastore.uris`` of the session's Spark; ``None`` if it is embedded or secured.

    ``None`` over Spark Connect too: the server's metastore need not be reachable from here.
    """
    if is_remote(session) or session.conf.get("spark.sql.catalogImplementation") != "hive":
        return None
    # the settings of Spark's own client; a SET in the session does not change that client
    conf: Any = session._jsparkSession.sharedState().hadoopConf()
    if any(conf.getBoolean(name, False) for name in _SECURED):
        return None
    return str(conf.get("hive.metastore.uris") or "").strip() or None
