"""Which metastore the local task asks for partitions: Spark's own, past Spark where it can."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.runtime.metastore import Metastore, MetastoreError
from airflow_hive_opt.spark.connect import is_remote
from airflow_hive_opt.spark.connect_catalog import SessionCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# What the plain Thrift client does not speak.
_SECURED = (
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.thrift.framed.transport.enabled",
    "hive.metastore.thrift.compact.protocol.enabled",
)
_PATIENCE = 10  # seconds; a server that wants TLS says nothing at all


@contextmanager
def partitions_of(session: SparkSession, catalog: SessionCatalog) -> Iterator[Metastore]:
    """The metastore to ask for partitions: over Thrift where Spark's is remote, else ``catalog``.

    Over Thrift partitions are counted without their names, which Spark can't do.
    """
    uris = plain_uris(session)
    if uris is None or not _speaks_thrift(uris):
        yield catalog
        return
    # late: needs a package that Spark's own catalog does without
    from airflow_hive_opt.runtime.thrift_metastore import ThriftMetastore

    with ThriftMetastore(uris) as metastore:
        yield metastore


def _speaks_thrift(uris: str) -> bool:
    """Whether a plain Thrift client is understood; Spark may have settings that we do not know."""
    from airflow_hive_opt.runtime.thrift_connection import ThriftConnection, addresses

    try:
        connection = ThriftConnection(addresses(uris), _PATIENCE, attempts=1)
        with closing(connection):
            connection.call("get_databases", "default")
    except (MetastoreError, ValueError) as error:
        log.info("partitions are asked through Spark: %s", error)
        return False
    return True


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
