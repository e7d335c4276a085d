"""Everything of Airflow that this package uses, for all its versions.

Airflow's own compatibility provider resolves most names. This module resolves the others: names
that some versions of that provider do not resolve, and names that only some versions of Airflow
have.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
    AirflowSkipException,
    Asset,
    BaseHook,
    BaseOperator,
    BaseOperatorLink,
    BaseSensorOperator,
    Connection,
    Context,
    DecoratedOperator,
    ObjectStoragePath,
    PokeReturnValue,
    TaskDecorator,
    TaskGroup,
    TaskInstanceKey,
    XComArg,
    conf,
    determine_kwargs,
    get_current_context,
    redact,
    task_decorator_factory,
)
from airflow.triggers.base import BaseTrigger, TriggerEvent

try:
    from airflow.sdk.execution_time.context import OutletEventAccessor
except ImportError:  # before Airflow 3.0
    from airflow.utils.context import OutletEventAccessor  # type: ignore[no-redef,attr-defined]
try:
    from airflow.sdk.definitions._internal.types import SET_DURING_EXECUTION
except ImportError:  # before Airflow 3.0
    from airflow.utils.types import NOTSET as SET_DURING_EXECUTION  # type: ignore[no-redef,attr-defined]
try:
    from airflow.sdk.log import mask_secret
except ImportError:  # before Airflow 3.1
    if find_spec("airflow.sdk") is not None:
        from airflow.sdk.execution_time.secrets_masker import (  # type: ignore[no-redef]
            mask_secret,
        )
    else:  # before Airflow 3.0
        from airflow.utils.log.secrets_masker import (  # type: ignore[no-redef,import-not-found]
            mask_secret,
        )

__all__ = (
    "SET_DURING_EXECUTION",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "Asset",
    "BaseHook",
    "BaseOperator",
    "BaseOperatorLink",
    "BaseSensorOperator",
    "BaseTrigger",
    "Connection",
    "Context",
    "DecoratedOperator",
    "ObjectStoragePath",
    "PokeReturnValue",
    "TaskDecorator",
    "TaskGroup",
    "TaskInstanceKey",
    "TriggerEvent",
    "XComArg",
    "boto3_session",
    "conf",
    "determine_kwargs",
    "get_current_context",
    "kubernetes_client",
    "mask_secret",
    "redact",
    "store_link",
    "task_decorator_factory",
)

HAS_SPARK_PROVIDER = find_spec("airflow.providers.apache") is not None and (
    find_spec("airflow.providers.apache.spark") is not None
)
HAS_KUBERNETES_PROVIDER = find_spec("airflow.providers.cncf") is not None and (
    find_spec("airflow.providers.cncf.kubernetes") is not None
)
NO_KUBERNETES_PROVIDER = (
    "Airflow's Kubernetes provider is not installed, and its Spark provider needs it for a master "
    "k8s://...: pip install 'airflow-hive-opt[spark-submit,kubernetes]'"
)
HAS_AMAZON_PROVIDER = find_spec("airflow.providers.amazon") is not None
NO_SPARK_PROVIDER = (
    "Airflow's Spark provider is not installed, and without it statements run on the embedded "
    "Spark alone: pip install 'airflow-hive-opt[spark-submit]'"
)

TRIGGERS_ARE_KILLED = hasattr(BaseTrigger, "on_kill")
"""Whether a trigger hears that a user has stopped its task, which it does since Airflow 3.3."""

HAS_PAGES = find_spec("airflow.api_fastapi") is not None
"""Whether the API server mounts applications of plugins."""

TAKES_PARTITIONS = hasattr(OutletEventAccessor, "add_partitions")
"""Whether asset events can name partitions."""


def pages_accept_browser_logins() -> bool:
    """Whether a plugin's pages accept the login of a browser, which they do since Airflow 3.1.

    Needs :data:`HAS_PAGES`. Only the API server calls this, because the import is slow.
    """
    from airflow.api_fastapi.core_api import security

    return hasattr(security, "COOKIE_NAME_JWT_TOKEN")


async def connection_of(conn_id: str) -> Connection:
    """Looks up the connection without blocking a triggerer."""
    if hasattr(BaseHook, "aget_connection"):
        return await BaseHook.aget_connection(conn_id)
    from asgiref.sync import sync_to_async  # before Airflow 3.1

    return await sync_to_async(BaseHook.get_connection)(conn_id)


def boto3_session(connection: Connection, fields: dict[str, Any]) -> Any:
    """A session of boto3 for an ``aws`` connection: the Amazon provider's, else of ``fields``.

    Raises ``AirflowFailException``, without the values of ``fields``.
    """
    if HAS_AMAZON_PROVIDER:
        from airflow.providers.amazon.aws.hooks.base_aws import BaseSessionFactory

        return BaseSessionFactory(conn=connection).create_session()
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.session.Session(**fields)
    except BotoCoreError as error:
        raise AirflowFailException(f"connection {connection.conn_id!r}: {error}") from None


def kubernetes_client() -> Any:
    """Airflow's client for Kubernetes' API; raises ``ConfigException``. Calls no server."""
    from airflow.providers.cncf.kubernetes.kube_client import get_kube_client

    return get_kube_client()


def why_kubernetes_cant_be_called() -> str | None:
    """Why Airflow has no client for Kubernetes' API; ``None`` if it has one."""
    from kubernetes.config import ConfigException

    try:
        kubernetes_client()
    except ConfigException as error:
        return str(error)
    return None


def store_link(context: Context, link: BaseOperatorLink, address: str | None) -> None:
    """Stores a link's address while its task runs; before Airflow 3.0 links are not stored."""
    if address is not None and (key := getattr(link, "xcom_key", None)) is not None:
        instance: Any = context["ti"]
        instance.xcom_push(key=key, value=address)
