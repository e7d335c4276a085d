"""AWS Glue as the metastore, from an Airflow connection of the type ``aws``.

If Airflow's Amazon provider is installed, it makes the session, with all that it knows, such as
``role_arn``. Without it, these fields count:

- login and password: the access key. Without them boto3 looks for credentials itself.
- ``aws_session_token``, ``region_name``, ``profile_name`` and ``endpoint_url`` in the extra.

In both cases ``catalog_id`` in the extra is the account whose Data Catalog it is, and the schema is
the database of tables without a database name.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import AirflowFailException, boto3_session

if TYPE_CHECKING:
    from airflow_hive_opt.metastores.glue.connection import GlueSettings
    from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
    from airflow_hive_opt.provider.airflow_compat import Connection

_SETTING = "spark.hadoop.hive.metastore.client.factory.class"
_FACTORY = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"


def is_glue(connection: Connection) -> bool:
    """Whether the connection is one of AWS."""
    return connection.conn_type == "aws"


def names_glue(settings: Mapping[str, Any]) -> bool:
    """Whether Spark's settings name AWS Glue as the metastore."""
    return "glue" in str(settings.get(_SETTING, "")).lower()


def glue_metastore(connection: Connection, timeout: float) -> GlueMetastore:
    """The client for a connection; raises ``AirflowFailException`` if there can't be one."""
    from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
    from airflow_hive_opt.metastores.metastore import MetastoreError

    try:
        session = _session(connection)
        return GlueMetastore(
            _settings(connection), connection.schema or "default", session, timeout
        )
    except MetastoreError as error:
        raise AirflowFailException(f"connection {connection.conn_id!r}: {error}") from None


def glue_spark_conf(connection: Connection) -> dict[str, str]:
    """Spark's settings for a connection, without credentials: Spark uses its machine's role."""
    settings = _settings(connection)
    conf = {
        _SETTING: _FACTORY,
        "spark.hadoop.hive.metastore.glue.catalogid": settings.catalog_id,
        "spark.hadoop.aws.region": settings.region,
        "spark.hadoop.aws.glue.endpoint": settings.endpoint,
    }
    return {name: value for name, value in conf.items() if value}


def _settings(connection: Connection) -> GlueSettings:
    from airflow_hive_opt.metastores.glue.connection import GlueSettings

    extra = connection.extra_dejson
    for_glue = (extra.get("service_config") or {}).get("glue") or {}
    endpoint = for_glue.get("endpoint_url") or extra.get("endpoint_url")
    return GlueSettings(extra.get("region_name"), endpoint, extra.get("catalog_id"))


def _session(connection: Connection) -> Any:
    """A session of boto3 with the connection's credentials; ``None`` without boto3."""
    if find_spec("boto3") is None:
        return None  # the client says how to install it
    extra = connection.extra_dejson
    fields = {
        "aws_access_key_id": connection.login or extra.get("aws_access_key_id"),
        "aws_secret_access_key": connection.password or extra.get("aws_secret_access_key"),
        "aws_session_token": extra.get("aws_session_token"),
        "region_name": extra.get("region_name"),
        "profile_name": extra.get("profile_name"),
    }
    return boto3_session(connection, {name: value for name, value in fields.items() if value})
