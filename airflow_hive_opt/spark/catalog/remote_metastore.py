"""Where the local task looks up partitions: Spark's metastore itself, or Spark's catalog."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.metastores.glue.connection import GlueSettings
from airflow_hive_opt.metastores.metastore import KeySet, Metastore, MetastoreError, Remote
from airflow_hive_opt.metastores.partitions import Partition, matching
from airflow_hive_opt.metastores.thrift.security import PLAIN, Kerberos, Security
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.glue import glue_settings, is_on_glue
from airflow_hive_opt.statement.catalog import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_SASL = "hive.metastore.sasl.enabled"
# Settings of a metastore that the Thrift client can't talk to. It speaks TLS, but only Java reads
# the trust store of Spark's settings.
_NOT_SPOKEN = (
    "hive.metastore.use.SSL",
    "hive.metastore.thrift.framed.transport.enabled",
    "hive.metastore.thrift.compact.protocol.enabled",
)
_PATIENCE = 10  # seconds; a server that expects TLS never answers
# Up to this number, all names of a table's partitions are listed before the keys are known.
_PREFETCHED_NAMES = 5_000


class PartitionsOf:
    """Where a statement's local task looks up partitions; a context manager.

    A :class:`~airflow_hive_opt.metastores.metastore.PartitionCatalog`. It uses Thrift if Spark's
    metastore is a remote one without TLS, because Thrift counts partitions without listing their
    names, and AWS Glue's API if that is Spark's metastore. Otherwise it uses ``catalog``. A
    server takes some ten milliseconds to accept a client, and as long to count and to list names. A
    background thread does that while Spark plans the statement and reads keys.
    """

    def __init__(self, session: SparkSession, catalog: SessionCatalog) -> None:
        place = remote_of(session)
        glue = None if place else glue_settings(session)
        self._catalog = catalog
        self._background = ThreadPoolExecutor(1, "metastore")
        self._is_glue = glue is not None
        self._remote: Future[Remote | None] = self._background.submit(
            lambda: _connected(*place) if place else _glue_client(glue) if glue else None
        )
        self._prefetched: dict[str, Future[_Prefetched | None]] = {}

    def __enter__(self) -> PartitionsOf:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failed = self._remote.exception()  # metastore calls raise it
        self._background.shutdown(cancel_futures=True)  # no further calls to a server that fails
        if failed is None and (remote := self._remote.result()):
            remote.close()

    @property
    def names_are_cheap(self) -> bool:
        """See :class:`~airflow_hive_opt.metastores.metastore.PartitionCatalog`."""
        return not self._is_glue

    def prefetch(self, tables: Iterable[Table]) -> None:
        """Starts to count the tables' partitions, and to list them if few, not through Spark."""
        for table in tables:
            if table.partition_columns and table.name not in self._prefetched:
                self._prefetched[table.name] = self._background.submit(self._ask, table)

    def partition_count(self, table: Table, beyond: int = 1) -> int:
        """See :class:`~airflow_hive_opt.metastores.metastore.PartitionCatalog`."""
        ahead = self._answered(table)
        if ahead and (ahead.names is not None or self.names_are_cheap or ahead.count > beyond):
            return ahead.count
        return self._answering(table).partition_count(table, beyond)

    def partition_names(self, table: Table) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.PartitionCatalog`."""
        ahead = self._answered(table)
        if ahead and ahead.names is not None:
            return ahead.names
        return self._answering(table).partition_names(table)

    def partitions_by_keys(
        self, table: Table, keys: Sequence[KeySet], total: int
    ) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.PartitionCatalog`."""
        ahead = self._answered(table)
        if ahead and ahead.names is not None:
            types = [column.type for column in table.partition_columns]
            return list(matching(ahead.names, types, keys))
        return self._answering(table).partitions_by_keys(table, keys, total)

    def work(self) -> Work | None:
        """The metastore calls so far, Spark's included; ``None`` if Spark does not report them."""
        met = self._remote.done() and self._remote.exception() is None
        remote = self._remote.result() if met else None
        spark = self._catalog.work()
        own = remote.work() if remote else None
        return spark + own if own and spark else spark

    def _answering(self, table: Table) -> Metastore:
        """The metastore to call: the client, or Spark's catalog if there is none.

        Waits for the background thread first: two threads must not use a client at the same time.
        """
        wait(self._prefetched.values())
        remote = self._remote.result()
        if remote is None or (self._is_glue and not _is_same_table(remote, table)):
            return self._catalog
        return remote

    def _answered(self, table: Table) -> _Prefetched | None:
        return self._prefetched[table.name].result() if table.name in self._prefetched else None

    def _ask(self, table: Table) -> _Prefetched | None:
        remote = self._remote.result()
        if remote is None or (self._is_glue and not _is_same_table(remote, table)):
            return None
        return _Prefetched(*remote.first_names(table, _PREFETCHED_NAMES))


@dataclass(frozen=True)
class _Prefetched:
    """A table's number of partitions and, if there are few, the partitions."""

    count: int
    names: list[Partition] | None


def _connected(uris: str, security: Security) -> Remote | None:
    """A client that the server answers, else ``None``: Spark may have settings we do not know."""
    # imported late: it needs a package that Spark's own catalog does not
    from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore

    try:
        metastore = ThriftMetastore(uris, security=security)
        metastore.greet(_PATIENCE)
    except (MetastoreError, ValueError) as error:
        log.info("partitions are looked up through Spark: %s", error)
        return None
    return metastore


def _glue_client(settings: GlueSettings) -> Remote | None:
    """A client of the Data Catalog, or ``None`` without boto3 or a region."""
    from airflow_hive_opt.metastores.glue.metastore import GlueMetastore

    try:
        return GlueMetastore(settings)
    except MetastoreError as error:
        log.warning("each partition is fetched through Spark: %s", error)
        return None


def _is_same_table(glue: Remote, table: Table) -> bool:
    """Whether boto3's credentials and settings lead to the table that Spark knows.

    Compares its location and its partition columns, because Glue compares values by its own types.
    If they differ, or if Glue refuses, Spark's own client is used.
    """
    try:
        found = glue.table(table.name)
    except MetastoreError as error:
        log.warning("each partition is fetched through Spark: %s", error)
        return False
    if found is not None and (
        _folder(found.location) == _folder(table.location)
        and found.partition_columns == table.partition_columns
    ):
        return True
    log.warning(
        "each partition is fetched through Spark: AWS Glue's API has another location or other "
        "partition columns of %s than Spark",
        table.name,
    )
    return False


def _folder(location: str | None) -> str:
    """A location without scheme: EMR's ``s3`` is Hadoop's ``s3a``.

    >>> _folder("s3a://bucket/sales/"), _folder("s3://bucket/sales")
    ('bucket/sales', 'bucket/sales')
    """
    return (location or "").partition("://")[2].rstrip("/")


def remote_of(session: SparkSession) -> tuple[str, Security] | None:
    """``hive.metastore.uris`` of the session's Spark and what that metastore requires.

    ``None`` if it is embedded, or if the Thrift client can't talk to it. ``None`` over Spark
    Connect too: the server's metastore need not be reachable from here. On AWS Glue, Spark does not
    use this setting.
    """
    if is_remote(session) or session.conf.get("spark.sql.catalogImplementation") != "hive":
        return None
    # the settings of Spark's own client; a SET in the session does not change that client
    conf: Any = session._jsparkSession.sharedState().hadoopConf()
    if is_on_glue(session) or any(conf.getBoolean(name, False) for name in _NOT_SPOKEN):
        return None
    uris = str(conf.get("hive.metastore.uris") or "").strip()
    if not uris:
        return None
    if not conf.getBoolean(_SASL, False):
        return uris, PLAIN
    of_spark = session.sparkContext.getConf()
    kerberos = Kerberos(
        str(conf.get("hive.metastore.kerberos.principal") or "hive/_HOST"),
        of_spark.get("spark.kerberos.principal") or "",
        of_spark.get("spark.kerberos.keytab") or "",
    )
    return uris, Security(kerberos)
