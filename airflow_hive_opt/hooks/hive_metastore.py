"""``HiveMetastoreHook``: a Hive Metastore over Thrift or AWS Glue, from an Airflow connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.get_provider_info import ui_field_behaviour
from airflow_hive_opt.provider.airflow_compat import (
    AirflowFailException,
    AirflowNotFoundException,
    BaseHook,
)
from airflow_hive_opt.provider.glue import glue_metastore, glue_spark_conf, is_glue

if TYPE_CHECKING:
    from airflow_hive_opt.metastores.metastore import Remote
    from airflow_hive_opt.provider.airflow_compat import Connection

DEFAULT_CONN_ID = "metastore_default"
_DEFAULT_PORT = 9083
_PATIENCE = 10  # seconds, for the form's button


class HiveMetastoreHook(BaseHook):
    """Connects to the metastore of a ``hive_metastore`` connection.

    The connection's host may be a list such as ``a,b``: if one host does not answer, the client
    tries the next. The connection's schema is the database of tables without a database name. If
    the Hive provider is installed, the connection type and its form are that provider's, and its
    connections work here too. ``provider/metastore_security.py`` describes Kerberos, passwords and
    TLS. A connection of the type ``aws`` is AWS Glue, as ``provider/glue.py`` describes it.

    :param metastore_conn_id: ID of the connection.
    :param timeout: limit for a single read or write, in seconds.
    """

    conn_name_attr = "metastore_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = "hive_metastore"
    hook_name = "Hive Metastore Thrift"

    def __init__(self, metastore_conn_id: str = DEFAULT_CONN_ID, timeout: float = 60) -> None:
        super().__init__()
        self.metastore_conn_id = metastore_conn_id
        self.timeout = timeout

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """The fields of the connection's form."""
        return ui_field_behaviour(cls.conn_type)

    def uris(self) -> str:
        """The value for ``hive.metastore.uris``; raises ``AirflowFailException``."""
        return uris_of(self.connection())

    def connection(self) -> Connection:
        """Airflow's connection; raises ``AirflowFailException`` if there is none."""
        try:
            return self.get_connection(self.metastore_conn_id)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {self.metastore_conn_id!r}: add it under Admin > "
                "Connections, with the type Hive Metastore Thrift"
            ) from None

    def get_conn(self) -> Remote:
        """The metastore client, a context manager; connects at its first call.

        Raises ``AirflowFailException``.
        """
        return metastore_of(self.connection(), self.timeout)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the metastore answers, for the test button of the connection's form."""
        from airflow_hive_opt.metastores.metastore import MetastoreError

        try:
            connection = self.connection()
            with metastore_of(connection, _PATIENCE) as metastore:
                found = metastore.greet(_PATIENCE)
            place = "AWS Glue" if is_glue(connection) else f"at {uris_of(connection)}"
        except (AirflowFailException, MetastoreError) as error:
            return False, str(error)
        return True, f"the metastore {place} answers, and has {found}"


def metastore_of(connection: Connection, timeout: float = 60) -> Remote:
    """The client for a connection; raises ``AirflowFailException`` if that is not valid."""
    if is_glue(connection):
        return glue_metastore(connection, timeout)
    from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
    from airflow_hive_opt.provider.metastore_security import security_of

    try:
        database = connection.schema or "default"
        return ThriftMetastore(uris_of(connection), database, timeout, security_of(connection))
    except ValueError as error:
        raise AirflowFailException(f"connection {connection.conn_id!r}: {error}") from None


def spark_conf_of(metastore_conn_id: str | None) -> dict[str, str]:
    """Spark's metastore settings for a connection; empty without one.

    Raises ``AirflowFailException``.
    """
    if metastore_conn_id is None:
        return {}
    return spark_conf_for(HiveMetastoreHook(metastore_conn_id).connection())


def spark_conf_for(connection: Connection) -> dict[str, str]:
    """Spark's metastore settings for a connection; raises ``AirflowFailException``."""
    if is_glue(connection):
        return glue_spark_conf(connection)
    from airflow_hive_opt.provider.metastore_security import security_for_spark, security_of

    try:
        secured = security_for_spark(security_of(connection))
    except ValueError as error:
        raise AirflowFailException(f"connection {connection.conn_id!r}: {error}") from None
    return {"spark.hadoop.hive.metastore.uris": uris_of(connection), **secured}


def uris_of(connection: Connection) -> str:
    """``hive.metastore.uris`` for a connection; raises ``AirflowFailException``."""
    if not connection.host:
        raise AirflowFailException(f"connection {connection.conn_id!r} names no host")
    hosts = [host.strip().removeprefix("thrift://") for host in connection.host.split(",")]
    port = connection.port or _DEFAULT_PORT
    return ",".join(f"thrift://{host if ':' in host else f'{host}:{port}'}" for host in hosts)
